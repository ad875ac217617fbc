/* Keys of objects: see object_key.h. */
#include "object_key.h"

enum { USUAL_BYTES_MAX = 600 }; /* longer than any valid name and namespace */

static void put_key(char *out, str ns, str name)
{
    if (ns.n)
        memcpy(out, ns.p, ns.n);
    out[ns.n] = '/';
    if (name.n)
        memcpy(out + ns.n + 1, name.p, name.n);
}

void *object_key_find(const struct map *m, str ns, str name)
{
    char usual[USUAL_BYTES_MAX];
    size_t n = ns.n + 1 + name.n;
    char *key = n <= sizeof(usual) ? usual : mem_alloc(n);
    put_key(key, ns, name);
    void *found = map_get(m, (str){ key, n });
    if (key != usual)
        free(key);
    return found;
}

char *object_key_new(str ns, str name, str *ret_ns, str *ret_name)
{
    char *key = mem_zero(1, ns.n + 1 + name.n + 1);
    put_key(key, ns, name);
    *ret_ns = (str){ key, ns.n };
    *ret_name = (str){ key + ns.n + 1, name.n };
    return key;
}
