/* A kubeconfig of any bytes is taken or refused with a sentence. The first byte picks a cut, so that two
 * files are merged as well. */
#include "fuzz.h"
#include "kube/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    str all = { (const char *)data + 1, size - 1 };
    size_t cut = all.n * data[0] / 256;
    str texts[] = { str_upto(all, cut), str_from(all, cut) }, paths[] = { S("/a/one"), S("two") };
    for (size_t n = 1; n <= 2; n++) {
        struct kube_config *c = NULL;
        err_t e = { 0 };
        int r = kube_config_parse(n == 1 ? &all : texts, paths, n,
                                  &(struct kube_config_options){ 0 }, &c, &e);
        if (r < 0 ? c || !e.text[0] : !c || !c->server.n || !c->ns.n)
            abort();
        kube_config_free(c);
    }
    return 0;
}
