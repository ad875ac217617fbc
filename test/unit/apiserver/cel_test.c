/* The CEL engine: results, errors, types and costs of single expressions on one object. */
#include "tap.h"
#include "test_json.h"

#include "apiserver/schema/cel/cel.h"

static const char schema_text[] =
    "{'type':'object','properties':{"
    "'i':{'type':'integer'},'d':{'type':'number'},'s':{'type':'string','maxLength':10},"
    "'free':{'type':'string'},'on':{'type':'boolean'},'x':{'x-kubernetes-int-or-string':true},"
    "'l':{'type':'array','items':{'type':'integer'}},'a-b':{'type':'integer'},"
    "'names':{'type':'array','items':{'type':'string'}},"
    "'set':{'type':'array','x-kubernetes-list-type':'set','items':{'type':'string'}},"
    "'m':{'type':'object','additionalProperties':{'type':'string'}},"
    "'o':{'type':'object','properties':{'n':{'type':'integer','nullable':true}}},"
    "'t':{'type':'string','format':'date-time'},'r':{'type':'string','format':'duration'},"
    "'b':{'type':'string','format':'byte'},'namespace':{'type':'string'}}}";
static const char object_text[] =
    "{'i':5,'d':2,'s':'héllo','on':true,'x':'50%','l':[3,1,2],'a-b':7,'names':['b','a'],"
    "'set':['x','y'],'m':{'k':'v','z':'w'},'o':{'n':null},'t':'2020-02-29T13:14:15.5Z',"
    "'r':'1h30m','b':'aGk=','namespace':'ns'}";

/* The result as text; "error: ..." if it does not compile or fails. */
static str eval(struct arena *a, const char *expression, uint64_t *ret_cost)
{
    const struct cel_type *type = cel_type_of_schema(a, test_json_quoted(a, schema_text), false);
    struct cel_variable self = { S("self"), type };
    const struct cel_program *p = NULL;
    str issues;
    if (cel_compile(a, &(struct cel_env){ &self, 1, .root = type }, str_c(expression), &p,
                    &issues) < 0)
        return arena_join(a, (str[]){ S("compile: "), issues }, 2);
    struct cel_value value = cel_of_json(a, test_json_quoted(a, object_text), type);
    struct cel_run run = { .arena = a, .variables = &value };
    struct cel_value result = cel_run(p, &run);
    if (ret_cost)
        *ret_cost = run.cost;
    if (result.kind == CEL_ERROR)
        return arena_join(a, (str[]){ S("error: "), cel_text(result) }, 2);
    struct json *json = cel_to_json(a, result);
    return json ? json_to_str(a, json) : S("none");
}

struct row {
    const char *expression, *want;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        auto_arena struct arena a = { 0 };
        str got = eval(&a, rows[i].expression, NULL);
        if (!str_eqc(got, rows[i].want))
            tap_note(__FILE__, __LINE__, "%s is " STR_FMT ", want %s", rows[i].expression,
                     STR_ARG(got), rows[i].want);
    }
}

static void operators_give_values(void)
{
    static const struct row rows[] = {
        { "1 + 2 * 3", "7" },
        { "-7 / 2", "-3" },
        { "-7 % 3", "-1" },
        { "7u / 2u", "3" },
        { "1.5 + 2.0", "3.5" },
        { "'a' + 'b'", "\"ab\"" },
        { "[1] + [2]", "[1,2]" },
        { "self.i == 5 && self.d == 2.0", "true" },
        { "self.i < 5.5 && self.d >= 2", "true" },
        { "self.x == '50%' || self.x == 5", "true" },
        { "true ? 1 : 2", "1" },
        { "!self.on", "false" },
        { "-self.i", "-5" },
        { "0x1F", "31" },
        { "'\\u00e9' == 'é' && r'\\n' == '\\\\n'", "true" },
        { "b'\\xff'.size()", "1" },
        { "2 in self.l && !(9 in self.l) && 'k' in self.m", "true" },
        { "self.m['k'] + self.m.z", "\"vw\"" },
        { "{'a': 1, 'b': 2}.size()", "2" },
        { "self.a__dash__b + 1", "8" },
        { "self.__namespace__", "\"ns\"" },
        { "type(self.i) == int && type(self.x) == string", "true" },
        { "has(self.i) && !has(self.free) && !has(self.o.n)", "true" },
        { "self.set == ['y', 'x'] && self.names != ['a', 'b']", "true" },
        { "(self.set + ['y', 'z']).size()", "3" },
        { "dyn(1) == 1.0 && dyn(1) != 'a'", "true" },
        { "1 / 0 == 1 || true", "true" },
        { "false && 1 / 0 == 1", "false" },
    };
    check_rows(rows, countof(rows));
}

static void errors_are_values(void)
{
    static const struct row rows[] = {
        { "1 / 0", "error: division by zero" },
        { "1 % 0", "error: modulus by zero" },
        { "9223372036854775807 + 1", "error: integer overflow" },
        { "0u - 1u", "error: unsigned integer overflow" },
        { "-(-9223372036854775808)", "error: integer overflow" },
        { "self.l[3]", "error: index out of bounds: 3" },
        { "self.l[-1]", "error: index out of bounds: -1" },
        { "self.m.nope", "error: no such key: nope" },
        { "self.m['nope']", "error: no such key: nope" },
        { "self.free", "error: no such key: free" },
        { "int('x')", "error: type conversion error from 'string' to 'int'" },
        { "'abc'.charAt(5)", "error: index out of range: 5" },
        { "'abc'.substring(2, 1)", "error: invalid substring range. start: 2, end: 1" },
        { "self.x > 5", "error: no such overload" },
        { "optional.none().value()", "error: optional.none() dereference" },
        { "[].min() == 1", "error: min called on empty list" },
        { "self.t.getHours('Nowhere/X')", "error: unknown time zone Nowhere/X" },
        { "{'a': 1, 'a': 2}", "error: Failed with repeated key: a" },
        { "[1, 2].map(x, 1 / (x - 1))", "error: division by zero" },
    };
    check_rows(rows, countof(rows));
}

static void macros_walk_lists_and_maps(void)
{
    static const struct row rows[] = {
        { "self.l.all(x, x > 0)", "true" },
        { "self.l.exists(x, x == 2)", "true" },
        { "self.l.exists_one(x, x > 2)", "true" },
        { "self.l.map(x, x * 2)", "[6,2,4]" },
        { "self.l.map(x, x > 1, x * 2)", "[6,4]" },
        { "self.l.filter(x, x > 1)", "[3,2]" },
        { "self.m.all(k, k != '')", "true" },
        { "self.m.all(k, v, v != '')", "true" },
        { "self.l.transformList(i, v, i * v)", "[0,1,4]" },
        { "self.m.transformMap(k, v, k + v)", "{\"k\":\"kv\",\"z\":\"zw\"}" },
        { "self.m.transformMapEntry(k, v, {v: k})", "{\"v\":\"k\",\"w\":\"z\"}" },
        { "self.l.sortBy(x, -x)", "[3,2,1]" },
        { "self.?free.orValue('none')", "\"none\"" },
        { "self.?s.optMap(x, x.size()).orValue(0)", "5" },
        { "self.m[?'q'].or(self.m[?'k']).value()", "\"v\"" },
        { "[?self.?free, ?self.?s].size()", "1" },
        { "{?'a': self.?free}.size()", "0" },
        { "[1, 2].exists(x, 1 / (x - 1) == 1)", "true" },
        { "self.l.all(x, self.l.exists(y, y == x))", "true" },
    };
    check_rows(rows, countof(rows));
}

static void libraries_give_values(void)
{
    static const struct row rows[] = {
        { "self.s.size() == 5 && self.s.charAt(1) == 'é'", "true" },
        { "'hello'.indexOf('l', 3) + 'hello'.lastIndexOf('l')", "6" },
        { "'abc'.replace('', '-')", "\"-a-b-c-\"" },
        { "'a,b,c'.split(',', 2)", "[\"a\",\"b,c\"]" },
        { "['a', 'b'].join('-') + ' x '.trim().upperAscii()", "\"a-bX\"" },
        { "'%s %d %.2f %x %b'.format(['a', 5, 1234.5, 255, 5])", "\"a 5 1,234.50 ff 101\"" },
        { "'%s %s'.format([['a'], {'k': 1.5}])", "\"[\\\"a\\\"] {\\\"k\\\":1.500000}\"" },
        { "'%e'.format([1.5])", "\"1.500000×10⁰⁰\"" },
        { "strings.quote('a\"b')", "\"\\\"a\\\\\\\"b\\\"\"" },
        { "'a1 b22'.findAll('[0-9]+')", "[\"1\",\"22\"]" },
        { "'aXbX'.find('.*?X')", "\"aX\"" },
        { "'abc'.matches('^a.c$')", "true" },
        { "self.l.sort() == [1, 2, 3] && self.l.sum() == 6 && self.l.max() == 3", "true" },
        { "[[1], [2, 3]].flatten().reverse()", "[3,2,1]" },
        { "[1, 1, 2].distinct().slice(0, 2)", "[1,2]" },
        { "lists.range(3).last().value()", "2" },
        { "sets.contains([1, 2], [2]) && !sets.intersects([1], [2])", "true" },
        { "string(self.t + duration('36h'))", "\"2020-03-02T01:14:15.5Z\"" },
        { "self.t.getDayOfYear() + self.t.getMonth()", "60" },
        { "self.t.getHours('+02:00') * 100 + self.t.getMinutes()", "1514" },
        { "string(self.r) + string(self.r.getMinutes())", "\"5400s90\"" },
        { "string(self.b) + string(bytes('é').size())", "\"hi2\"" },
        { "string(1e6) + string(0.1) + string(double(1) / 3.0)", "\"1e+060.10.3333333333333333\"" },
        { "url('https://u@h:8/p%20q?a=1&a=2').getHost()", "\"h:8\"" },
        { "url('https://h/?a=1&a=2').getQuery()['a']", "[\"1\",\"2\"]" },
        { "isURL('/a') && !isURL('a') && !isURL('https://h:x/')", "true" },
        { "quantity('1500m').asApproximateFloat()", "1.5" },
        { "quantity('1Gi').compareTo(quantity('1G')) + sign(quantity('-1'))", "0" },
        { "string(ip('2001:DB8::1')) + string(cidr('10.1.2.3/8').masked())",
          "\"2001:db8::110.0.0.0/8\"" },
        { "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !isIP('10.0.0.01')", "true" },
        { "semver('1.2.3-rc.1').isLessThan(semver('v1.2.3', true))", "true" },
        { "format.dns1123Label().validate('a').hasValue()", "false" },
        { "format.named('uuid').hasValue() && !format.named('x').hasValue()", "true" },
    };
    check_rows(rows, countof(rows));
}

static void wrong_expressions_do_not_compile(void)
{
    static const char *const expressions[] = {
        "",
        "self.nope",
        "other",
        "self.i == 'a'",
        "self.i == 1.0",
        "[1, 'a']",
        "self.i +",
        "(1",
        "'abc",
        "1 1",
        "foo(1)",
        "self.s.foo()",
        "has(self)",
        "self['i']",
        "self.l.all(x, x)",
        "self.i && true",
        "!self.i",
        "if == 1",
        "self.o == [1]",
        "'%d'.format(['a'])",
        "'%s'.format([])",
        "'%s'.format([1, 2])",
        "'a'.matches('(')",
        "duration('1x')",
        "timestamp('x')",
        "math.abs(1)",
        "'a'.reverse()",
        "authorizer.path('/')",
        "self.l.all(1, true)",
        "9223372036854775808",
        "Object{}",
        "self.i in 5",
    };
    for (size_t i = 0; i < countof(expressions); i++) {
        auto_arena struct arena a = { 0 };
        if (!str_starts(eval(&a, expressions[i], NULL), S("compile: ")))
            tap_note(__FILE__, __LINE__, "accepted: %s", expressions[i]);
    }
}

static void messages_point_to_the_place(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(eval(&a, "self.nope == 1", NULL),
           S("compile: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^"));
    EQ_STR(eval(&a, "self.i + self.s == 1", NULL),
           S("compile: ERROR: <input>:1:8: found no matching overload for '_+_' applied to '(int, "
             "string)'\n | self.i + self.s == 1\n | .......^"));
    EQ_STR(eval(&a, "self.i.startsWith('a')", NULL),
           S("compile: ERROR: <input>:1:18: found no matching overload for 'startsWith' applied to "
             "'int.(string)'\n | self.i.startsWith('a')\n | .................^"));
}

static void deep_and_large_expressions_are_refused(void)
{
    static const char *const parts[] = { "(", "!", "-", "[", "1+", "self.", "a.b(" };
    for (size_t i = 0; i < countof(parts); i++) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf text = { 0 };
        for (int n = 0; n < 5000; n++)
            buf_put(&text, str_c(parts[i]));
        buf_put(&text, S("1"));
        OK(str_starts(eval(&a, buf_str(&text).p, NULL), S("compile: ")));
    }
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("self.?s")); /* each macro doubles the tree */
    for (int n = 0; n < 40; n++)
        buf_put(&text, S(".optMap(x, x)"));
    OK(str_starts(eval(&a, buf_str(&text).p, NULL), S("compile: ")));
}

static void the_cost_limit_ends_everything(void)
{
    static const char *const expressions[] = {
        "lists.range(100000000).size() > 0",
        "lists.range(2000).all(x, lists.range(2000).all(y, x + y >= 0))",
        "lists.range(300000).map(x, x).size() > 0",
        "lists.range(5000).distinct().size() > 0",
        "lists.range(100000).map(x, 'aaaaaaaaaaaaaaaa').join('bbbbbbbbbbbbbbbbbbbb') == ''",
    };
    for (size_t i = 0; i < countof(expressions); i++) {
        auto_arena struct arena a = { 0 };
        uint64_t cost;
        EQ_STR(eval(&a, expressions[i], &cost),
               S("error: operation cancelled: actual cost limit exceeded"));
    }
}

static void costs_are_those_of_the_original(void)
{
    static const struct {
        const char *expression;
        uint64_t estimated, real;
    } rows[] = {
        { "self.i > 0", 3, 3 },
        { "has(self.o.n)", 2, 2 },
        { "self.l.all(x, x > 0)", UINT64_C(1572863) * 5 + 3, 3 * 5 + 3 + 2 },
        { "self.s.contains('ab')", 2 + 4, 2 + 1 },
        { "self.names.map(x, x).size() > 0", UINT64_C(1048575) * 13 + 15, 43 },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        auto_arena struct arena a = { 0 };
        const struct cel_type *type =
            cel_type_of_schema(&a, test_json_quoted(&a, schema_text), false);
        struct cel_variable self = { S("self"), type };
        const struct cel_program *p = NULL;
        str issues;
        uint64_t real = 0;
        if (!OK(cel_compile(&a, &(struct cel_env){ &self, 1, .root = type },
                            str_c(rows[i].expression), &p, &issues) == 0))
            continue;
        eval(&a, rows[i].expression, &real);
        if (i < 4 && p->cost.max != rows[i].estimated)
            tap_note(__FILE__, __LINE__, "%s is estimated at %llu", rows[i].expression,
                     (unsigned long long)p->cost.max);
        if (i < 2 && real != rows[i].real)
            tap_note(__FILE__, __LINE__, "%s costs %llu", rows[i].expression,
                     (unsigned long long)real);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(operators_give_values),
        TAP(errors_are_values),
        TAP(macros_walk_lists_and_maps),
        TAP(libraries_give_values),
        TAP(wrong_expressions_do_not_compile),
        TAP(messages_point_to_the_place),
        TAP(deep_and_large_expressions_are_refused),
        TAP(the_cost_limit_ends_everything),
        TAP(costs_are_those_of_the_original),
        { 0 },
    });
}
