/* Whatever a template was filled in with, what comes out is a path that gateways take, and making a
 * path of a path that has nothing to encode changes nothing. */
#include "fuzz.h"

#include "gateway_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf path = { 0 }, again = { 0 };
    struct aim_path_problem problem = { 0 };
    if (aim_path_normalize((str){ (const char *)data, size }, &path, &problem) < 0) {
        if (path.n || problem.fault == PATH_FINE || !problem.text[0])
            abort();
        return 0;
    }
    if (!is_gateway_path(buf_str(&path)))
        abort();
    if (str_find_char(buf_str(&path), '%') == SIZE_MAX &&
        (aim_path_normalize(buf_str(&path), &again, &problem) < 0 ||
         !str_eq(buf_str(&path), buf_str(&again))))
        abort();
    return 0;
}
