/* The law of every path that we make: the Gateway API takes it. */
#ifndef FLYBALL_FUZZ_GATEWAY_PATH_H
#define FLYBALL_FUZZ_GATEWAY_PATH_H

#include "runtimeconfig/path_core.h"

static inline bool is_gateway_path(str path)
{
    if (!path.n || path.p[0] != '/' || path.n > PATH_BYTES_MAX ||
        (path.n > 1 && path.p[path.n - 1] == '/'))
        return false;
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') ||
                     (c && strchr("/-_.~$&+=:@%", c));
        if (!plain)
            return false;
    }
    return str_find(path, S("//")) == SIZE_MAX && str_find(path, S("/./")) == SIZE_MAX &&
           str_find(path, S("/../")) == SIZE_MAX && str_find(path, S("%2F")) == SIZE_MAX &&
           !str_ends(path, S("/.")) && !str_ends(path, S("/.."));
}

#endif
