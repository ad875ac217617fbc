#include "tap.h"

#include "base/civil.h"

static void converts_known_days(void)
{
    static const struct {
        struct civil_date date;
        int64_t days;
        int weekday;
    } t[] = {
        { { 1970, 1, 1 }, 0, 4 },         { { 1969, 12, 31 }, -1, 3 },
        { { 2000, 2, 29 }, 11016, 2 },    { { 2026, 6, 3 }, 20607, 3 },
        { { 1600, 2, 29 }, -135081, 2 },  { { 1, 1, 1 }, -719162, 1 },
        { { 0, 3, 1 }, -719468, 3 },      { { -1, 12, 31 }, -719529, 5 },
        { { 9999, 12, 31 }, 2932896, 5 }, { { 2100, 3, 1 }, 47541, 1 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        EQ_INT(civil_to_days(t[i].date), t[i].days);
        EQ_INT(civil_weekday(t[i].days), t[i].weekday);
        struct civil_date back = civil_from_days(t[i].days);
        OK(back.year == t[i].date.year && back.month == t[i].date.month &&
           back.day == t[i].date.day);
    }
}

/* Counting up day by day through an era must agree with the arithmetic. */
static void agrees_with_counting(void)
{
    struct civil_date date = { 1799, 1, 1 };
    int64_t first = civil_to_days(date);
    int wrong = 0;
    for (int64_t days = first; days < first + 146097 + 1000; days++) {
        struct civil_date got = civil_from_days(days);
        wrong += got.year != date.year || got.month != date.month || got.day != date.day ||
                 civil_to_days(date) != days || !civil_is_date(date);
        if (++date.day > civil_month_days(date.year, date.month)) {
            date.day = 1;
            date.year += date.month == 12;
            date.month = date.month % 12 + 1;
        }
    }
    EQ_INT(wrong, 0);
}

static void knows_dates(void)
{
    OK(civil_is_date((struct civil_date){ 2024, 2, 29 }));
    OK(!civil_is_date((struct civil_date){ 2023, 2, 29 }));
    OK(!civil_is_date((struct civil_date){ 1900, 2, 29 }));
    OK(!civil_is_date((struct civil_date){ 2024, 13, 1 }));
    OK(!civil_is_date((struct civil_date){ 2024, 0, 1 }));
    OK(!civil_is_date((struct civil_date){ 2024, 4, 31 }));
    OK(!civil_is_date((struct civil_date){ 2024, 4, 0 }));
    EQ_INT(civil_day_of(-1), -1);
    EQ_INT(civil_day_of(0), 0);
    EQ_INT(civil_day_of(86399), 0);
    EQ_INT(civil_day_of(-86400), -1);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(converts_known_days), TAP(agrees_with_counting), TAP(knows_dates), { 0 } });
}
