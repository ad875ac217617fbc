/* A kind that is installed later is noticed at once where definitions can be watched, and polled where they cannot. */
#include "kube/kinds.h"

#include "cluster.h"
#include "tap.h"

enum { START_S = 1780473600 };

static const struct resource things = { "later.test", "v1", "things", "Thing", true };

struct thing {
    struct record meta;
};

static const struct fields thing_kept = { sizeof(struct thing), NULL, 0 };
static struct cache *cache; /* of the feature */

static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    static const struct cache_spec spec = { .resource = &things,
                                            .need = CACHE_IF_KNOWN,
                                            .keep = &thing_kept };
    *ret_state = NULL;
    return manager_cache(m, &spec, &cache, e);
}

static const struct feature feature = { .name = "later", .start = start_feature };

static void install(struct cluster *c)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena,
                       S("apiVersion: apiextensions.k8s.io/v1\n"
                         "kind: CustomResourceDefinition\n"
                         "metadata: {name: things.later.test}\n"
                         "spec:\n"
                         "  group: later.test\n"
                         "  scope: Namespaced\n"
                         "  names: {plural: things, singular: thing, kind: Thing}\n"
                         "  versions:\n"
                         "  - {name: v1, served: true, storage: true,\n"
                         "     schema: {openAPIV3Schema: {type: object}}}\n"),
                       &tree, &e),
            &e);
    cluster_create(c, &resource_crds, NULL, tree);
}

/* Waits for the cache to have the kind and one object of it; returns the seconds that this took. */
static int64_t wait_for_thing(struct cluster *c)
{
    static const char *const body =
        "{\"apiVersion\":\"later.test/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"one\"}}";
    int64_t from = cluster_now(c);
    int code = 0;
    while (cluster_now(c) < from + 1000 && !cache_get(cache, S("default"), S("one"))) {
        if (code != 201)
            code = cluster_do(c, KUBE_CREATE, &things, "default", "one", str_c(body)).code;
        cluster_until(c, cluster_now(c) + 1);
    }
    OK(cache_get(cache, S("default"), S("one")) != NULL);
    return cluster_now(c) - from;
}

static void a_kind_is_noticed_at_once(void)
{
    struct cluster c;
    cluster_start(&c, START_S);
    c.counted = "/things";
    cluster_operator(&c, &feature, NULL);
    cluster_until(&c, START_S + 1);
    OK(cache_synced(cache) && cache_absent(cache)); /* the manager is ready without it */
    cluster_until(&c, START_S + 6 * 3600);
    OK(c.counted_n <= 2); /* not polled */
    install(&c);
    OK(wait_for_thing(&c) <= 3);
    OK(!cache_absent(cache));
    cluster_stop(&c);
}

static int install_and_wait(struct cluster *c)
{
    install(c);
    return (int)wait_for_thing(c);
}

static void uninstall(struct cluster *c)
{
    EQ_INT(cluster_do(c, KUBE_DELETE, &resource_crds, "", "things.later.test", S("")).code, 200);
    for (int i = 0; i < 30 && cache_get(cache, S("default"), S("one")); i++)
        cluster_until(c, cluster_now(c) + 1);
    OK(!cache_get(cache, S("default"), S("one")));
}

/* An update of an operator may remove its definitions and install them again: as soon as the first time, each time,
 * whether it was there at the start or not, and however long it was gone. */
static void a_kind_that_comes_back_is_noticed_at_once(void)
{
    for (int at_start = 0; at_start < 2; at_start++) {
        struct cluster c;
        cluster_start(&c, START_S);
        if (at_start)
            install(&c);
        cluster_operator(&c, &feature, NULL);
        cluster_until(&c, START_S + 10);
        if (at_start)
            wait_for_thing(&c);
        else
            install_and_wait(&c);
        for (int i = 0; i < 6; i++) {
            cluster_until(&c, cluster_now(&c) + 12);
            uninstall(&c);
            cluster_until(&c, cluster_now(&c) + (i == 5 ? 600 : 1));
            int took = install_and_wait(&c);
            if (!OK(took <= 3))
                printf("# round %d: noticed after %d s\n", i, took);
        }
        cluster_stop(&c);
    }
}

static void without_permission_it_is_polled(void)
{
    struct cluster c;
    cluster_start(&c, START_S);
    c.counted = "/things";
    c.hidden = "/customresourcedefinitions";
    cluster_operator(&c, &feature, NULL);
    cluster_until(&c, START_S + 120);
    OK(c.counted_n >= 4);
    install(&c);
    OK(wait_for_thing(&c) <= 31);
    cluster_stop(&c);
}

/* Definitions of other kinds, and a cluster that ends in between, have no effect. */
static void names_are_compared_whole(void)
{
    OK(kube_kinds_defines(S("things.later.test"), &things));
    OK(!kube_kinds_defines(S("things.later.tests"), &things));
    OK(!kube_kinds_defines(S("things"), &things) &&
       !kube_kinds_defines(S("thing.later.test"), &things));
    OK(!kube_kinds_defines(S("morethings.later.test"), &things) &&
       !kube_kinds_defines(S(""), &things));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_kind_is_noticed_at_once),
                                        TAP(a_kind_that_comes_back_is_noticed_at_once),
                                        TAP(without_permission_it_is_polled),
                                        TAP(names_are_compared_whole),
                                        { 0 } });
}
