/* Paths of resources. */
#include "kube/resource.h"
#include "tap.h"

static void paths(void)
{
    static const struct resource widgets = { "example.org", "v1", "widgets", "Widget", true };
    const struct {
        const struct resource *resource;
        const char *ns, *name, *subresource, *want;
    } t[] = {
        { &resource_pods, "", "", "", "/api/v1/pods" },
        { &resource_pods, "a", "", "", "/api/v1/namespaces/a/pods" },
        { &resource_pods, "a", "b", "resize", "/api/v1/namespaces/a/pods/b/resize" },
        { &resource_nodes, "ignored", "n1", "", "/api/v1/nodes/n1" },
        { &widgets, "a", "x/../y", "status",
          "/apis/example.org/v1/namespaces/a/widgets/x%2F..%2Fy/status" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        resource_path(t[i].resource, str_c(t[i].ns), str_c(t[i].name), str_c(t[i].subresource),
                      &out);
        EQ_STR(buf_str(&out), str_c(t[i].want));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(paths), { 0 } });
}
