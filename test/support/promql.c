/* Confines PromQL queries for tests that ask a real Prometheus what they mean.
 *
 *     promql NAMESPACE    reads queries from stdin, each ended by a NUL; answers "=CONFINED" or "!WHY NOT", likewise
 */
#include "prom/promql.h"
#include "base/arena.h"
#include "base/buf.h"

#include <stdio.h>

static void answer(str query, str ns)
{
    auto_arena struct arena a = { 0 };
    struct promql_matcher own = { S("namespace"), ns };
    str confined;
    err_t e;
    if (promql_confine(&a, query, &own, &confined, &e) < 0)
        printf("!%s", e.text);
    else
        printf("=" STR_FMT, STR_ARG(confined));
    putchar('\0');
}

int main(int argc, char **argv)
{
    auto_buf struct buf query = { 0 };
    if (argc != 2) {
        fprintf(stderr, "usage: promql NAMESPACE\n");
        return 2;
    }
    for (int c; (c = getchar()) != EOF;) {
        if (c) {
            buf_putc(&query, (char)c);
            continue;
        }
        answer(buf_str(&query), str_c(argv[1]));
        buf_clear(&query);
    }
    return fflush(stdout) ? 1 : 0;
}
