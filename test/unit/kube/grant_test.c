/* Consent: lists in annotations, ReferenceGrants, and which changes concern which objects. */
#include "kube/grant.h"

#include "base/buf.h"
#include "tap.h"

static void lists_of_namespaces(void)
{
    static const struct {
        const char *list;
        bool has_a;
    } t[] = {
        { "", false },     { "a", true },      { " a ", true },
        { "b,a", true },   { "b , a,", true }, { "\tb,\n a\n", true },
        { ",,a,,", true }, { "*", true },      { " * ", true },
        { "b,*", true },   { ",", false },     { " ", false },
        { "b", false },    { "A", false },     { "aa", false },
        { "b a", false }, /* blanks do not separate */
        { "a*", false },  /* no patterns */
        { "**", false },   { "\"a\"", false }, { "a;b", false },
        { "[a]", false },  { "!b", false },
    };
    for (size_t i = 0; i < countof(t); i++)
        if (grant_list_has(str_c(t[i].list), S("a")) != t[i].has_a)
            tap_note(__FILE__, __LINE__, "the list \"%s\" %s a", t[i].list,
                     t[i].has_a ? "lacks" : "has");
    OK(!grant_list_has(S("*"), S(""))); /* what has no namespace refers to nothing */
    OK(!grant_list_has(S(",a"), S("")));
    OK(!grant_list_has((str){ 0 }, S("a")));
}

/* ---- ReferenceGrants */

static struct projector *projector;
static struct projection *projection;

static void setup(void)
{
    err_t e;
    projector = projector_new();
    OK_CALL(projection_new(projector, &grant_fields, 0, &projection, &e), &e);
}

static void teardown(void)
{
    projection_free(projection);
    projector_free(projector);
}

static struct record *read_grant(const char *spec, const char *more)
{
    auto_buf struct buf text = { 0 };
    struct record *r = NULL;
    err_t e;
    buf_printf(&text,
               "{\"metadata\":{\"name\":\"g\",\"namespace\":\"shop\",\"resourceVersion\":\"1\"%s},"
               "\"spec\":%s}",
               more, spec);
    OK_CALL(project(projection, buf_str(&text), &r, &e), &e);
    return r;
}

static struct grant_reference reference(const char *from_ns, const char *to_name)
{
    return (struct grant_reference){ S("from.example"), S("Source"), str_c(from_ns),
                                     S("autoscaling"),  S("Target"), S("shop"),
                                     str_c(to_name) };
}

#define FROM "\"from\":[{\"group\":\"from.example\",\"kind\":\"Source\",\"namespace\":\"a\"}]"
#define TO "\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\"}]"

static void grants_are_exact(void)
{
    static const struct {
        const char *spec;
        bool permits;
    } t[] = {
        { "{" FROM "," TO "}", true },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":\"web\"}]}",
          true },
        { "{" FROM ",\"to\":[{\"group\":\"\",\"kind\":\"Secret\"},{\"group\":\"autoscaling\","
          "\"kind\":\"Target\",\"name\":\"web\"}]}",
          true },
        { "{\"from\":[{\"group\":\"x\",\"kind\":\"Y\",\"namespace\":\"b\"},{\"group\":\"from.example\","
          "\"kind\":\"Source\",\"namespace\":\"a\"}]," TO "}",
          true },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":null}]}",
          true },
        /* another name, kind or group */
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":\"api\"}]}",
          false },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Secret\"}]}", false },
        { "{" FROM ",\"to\":[{\"group\":\"\",\"kind\":\"Target\"}]}", false },
        { "{" FROM ",\"to\":[{\"kind\":\"Target\"}]}", false },
        { "{\"from\":[{\"group\":\"from.example\",\"kind\":\"Other\",\"namespace\":\"a\"}]," TO "}",
          false },
        { "{\"from\":[{\"group\":\"\",\"kind\":\"Source\",\"namespace\":\"a\"}]," TO "}", false },
        { "{\"from\":[{\"group\":\"from.example\",\"kind\":\"Source\",\"namespace\":\"b\"}]," TO
          "}",
          false },
        { "{\"from\":[{\"group\":\"from.example\",\"kind\":\"Source\",\"namespace\":\"*\"}]," TO
          "}",
          false },
        { "{\"from\":[{\"group\":\"from.example\",\"kind\":\"Source\"}]," TO "}", false },
        /* ends of different entries make no pair */
        { "{\"from\":[{\"group\":\"from.example\",\"kind\":\"Other\",\"namespace\":\"a\"},{\"group\":"
          "\"from.example\",\"kind\":\"Source\",\"namespace\":\"b\"}]," TO "}",
          false },
        /* what cannot be read permits nothing */
        { "{" FROM "}", false },
        { "{" TO "}", false },
        { "{}", false },
        { "null", false },
        { "{\"from\":{\"namespace\":\"a\"},\"to\":\"*\"}", false },
        { "{\"from\":[\"a\"],\"to\":[\"Target\"]}", false },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":7}]}", false },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":\"\"}]}",
          false },
        { "{" FROM ",\"to\":[{\"group\":\"autoscaling\",\"kind\":\"Target\",\"name\":\"*\"}]}",
          false },
    };
    setup();
    struct grant_reference ref = reference("a", "web");
    for (size_t i = 0; i < countof(t); i++) {
        struct record *r = read_grant(t[i].spec, "");
        if (grant_permits(record_as(struct grant_record, r), &ref) != t[i].permits)
            tap_note(__FILE__, __LINE__, "%s %s", t[i].spec, t[i].permits ? "denies" : "permits");
        record_unref(r);
    }
    OK(!grant_permits(NULL, &ref));
    teardown();
}

static void a_grant_counts_in_its_own_namespace_until_it_goes(void)
{
    setup();
    struct record *r = read_grant("{" FROM "," TO "}", "");
    struct record *leaving =
        read_grant("{" FROM "," TO "}", ",\"deletionTimestamp\":\"2026-06-03T08:00:00Z\"");
    struct grant_reference ref = reference("a", "web"), elsewhere = ref,
                           other = reference("b", "web");
    elsewhere.to_ns = S("bank");
    OK(grant_permits(record_as(struct grant_record, r), &ref));
    OK(!grant_permits(record_as(struct grant_record, r), &elsewhere));
    OK(!grant_permits(record_as(struct grant_record, leaving), &ref));
    OK(grant_concerns(NULL, record_as(struct grant_record, r), &ref));
    OK(grant_concerns(record_as(struct grant_record, r), NULL, &ref));
    OK(grant_concerns(record_as(struct grant_record, r), record_as(struct grant_record, leaving),
                      &ref));
    OK(!grant_concerns(record_as(struct grant_record, r), record_as(struct grant_record, r), &ref));
    OK(!grant_concerns(NULL, record_as(struct grant_record, r), &other));
    OK(!grant_concerns(NULL, record_as(struct grant_record, r), &elsewhere));
    record_unref(r);
    record_unref(leaving);
    teardown();
}

static void a_namespace_concerns_those_it_named(void)
{
    struct grant_home_record shop = { .meta.name = S("shop"), .allow = S("a,b") };
    struct grant_home_record less = { .meta.name = S("shop"), .allow = S("b") };
    struct grant_home_record none = { .meta.name = S("shop") };
    struct grant_reference a = reference("a", "web"), b = reference("b", "web"), elsewhere = a;
    elsewhere.to_ns = S("bank");
    OK(grant_home_concerns(&shop, &less, &a));
    OK(!grant_home_concerns(&shop, &less, &b));
    OK(grant_home_concerns(&less, &none, &b));
    OK(grant_home_concerns(&shop, NULL, &a)); /* the namespace is gone */
    OK(grant_home_concerns(NULL, &shop, &a)); /* and here again */
    OK(!grant_home_concerns(NULL, &none, &a));
    OK(!grant_home_concerns(&shop, NULL, &elsewhere));
    OK(!grant_home_concerns(NULL, NULL, &a));
}

static void a_refusal_says_what_to_do(void)
{
    auto_arena struct arena a = { 0 };
    struct grant_reference ref = reference("a", "web");
    EQ_STR(grant_refusal(&a, &ref),
           S("Target shop/web does not permit references from namespace \"a\"; annotate it or "
             "namespace \"shop\" with flyball.io/allow-references-from=a, or create a "
             "ReferenceGrant there"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(lists_of_namespaces),
        TAP(grants_are_exact),
        TAP(a_grant_counts_in_its_own_namespace_until_it_goes),
        TAP(a_namespace_concerns_those_it_named),
        TAP(a_refusal_says_what_to_do),
        { 0 },
    });
}
