/* Times, dates and weekdays: see schedule_lex.h. Each take_* function consumes a prefix of the text. */
#include "schedule_lex.h"

#include "../base/civil.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Consumes between `least` and `most` digits and returns their value; -1 if there are fewer. */
static int take_digits(str *s, size_t least, size_t most)
{
    int value = 0;
    size_t n = 0;
    for (; n < most && n < s->n && is_digit(s->p[n]); n++)
        value = value * 10 + (s->p[n] - '0');
    if (n < least)
        return -1;
    *s = str_from(*s, n);
    return value;
}

static bool take_char(str *s, char c)
{
    if (!s->n || s->p[0] != c)
        return false;
    *s = str_from(*s, 1);
    return true;
}

/* As Go's layout "15:04:05": the hour may have one digit, and a fraction of a second is accepted. */
int schedule_lex_time(str text, int32_t *ret_second_of_day)
{
    int hour = take_digits(&text, 1, 2);
    if (hour < 0 || hour > 23 || !take_char(&text, ':'))
        return -EINVAL;
    int minute = take_digits(&text, 2, 2);
    if (minute < 0 || minute > 59 || !take_char(&text, ':'))
        return -EINVAL;
    int second = take_digits(&text, 2, 2);
    if (second < 0 || second > 59)
        return -EINVAL;
    if (take_char(&text, '.') || take_char(&text, ',')) {
        if (!text.n)
            return -EINVAL;
        while (text.n && is_digit(text.p[0]))
            text = str_from(text, 1);
    }
    if (text.n)
        return -EINVAL;
    *ret_second_of_day = hour * 3600 + minute * 60 + second;
    return 0;
}

int schedule_lex_clock(str text, int32_t *ret_second_of_day)
{
    str rest = text;
    int hour = take_digits(&rest, 1, 2);
    bool has_minute = hour >= 0 && hour <= 23 && take_char(&rest, ':');
    int minute = has_minute ? take_digits(&rest, 2, 2) : -1;
    if (minute < 0 || minute > 59 || rest.n)
        return schedule_lex_time(text, ret_second_of_day);
    *ret_second_of_day = hour * 3600 + minute * 60;
    return 0;
}

int schedule_lex_date(str text, int32_t *ret_day)
{
    int year = take_digits(&text, 4, 4);
    if (year < 1 || !take_char(&text, '-'))
        return -EINVAL;
    int month = take_digits(&text, 2, 2);
    if (month < 0 || !take_char(&text, '-'))
        return -EINVAL;
    int day = take_digits(&text, 2, 2);
    struct civil_date date = { year, month, day };
    if (day < 0 || text.n || !civil_is_date(date))
        return -EINVAL;
    *ret_day = (int32_t)civil_to_days(date);
    return 0;
}

static const char *const weekday_words[7] = {
    "SU,SUN,SUNDAY",
    "M,MO,MON,MONDAY",
    "TU,TUE,TUES,TUESDAY",
    "W,WE,WED,WEDNESDAY",
    "TH,THU,THUR,THURS,THURSDAY",
    "F,FR,FRI,FRIDAY",
    "SA,SAT,SATURDAY",
};

/* Any of the usual abbreviations, in any case. */
int schedule_lex_weekday(str word, int *ret_weekday)
{
    for (int day = 0; day < 7; day++) {
        str rest = str_c(weekday_words[day]), known;
        while (str_cut(&rest, ',', &known)) {
            if (str_eq_nocase(word, known)) {
                *ret_weekday = day;
                return 0;
            }
        }
    }
    return -EINVAL;
}

bool schedule_lex_next_word(str *rest, str *ret_word)
{
    str part;
    if (!str_cut(rest, ',', &part))
        return false;
    *ret_word = str_trim(part);
    return true;
}
