/* Configurations and their consumers: see configs.h.
 *
 *     by_key  "ns/name" -> aim_config -> list of aim_config_link, one per consumer
 *
 * Keys are owned by the configurations and borrowed by the map; links are part of struct aim_tracked. The counts of a
 * configuration always match its list. */
#include "configs.h"

#include "../kube/object_key.h"

struct aim_config *aim_configs_find(const struct aim_configs *c, str ns, str name)
{
    return object_key_find(&c->by_key, ns, name);
}

static struct aim_config *add_config(struct aim_configs *c, str ns, str name)
{
    struct aim_config *config = mem_zero(1, sizeof(*config));
    config->key = object_key_new(ns, name, &config->ns, &config->name);
    config->cluster = !ns.n;
    map_put(&c->by_key, str_c(config->key), config);
    return config;
}

/* The arena is reset, so everything parsed from the old version becomes invalid here. */
struct aim_config *aim_configs_put(struct aim_configs *c, const struct resource *resource,
                                   const struct aim_record *r, bool *ret_changed)
{
    struct aim_config *config = aim_configs_find(c, r->meta.ns, r->meta.name);
    char before[SHA256_HEX + 1] = "";
    if (config)
        memcpy(before, config->kept.hash, sizeof(before));
    else
        config = add_config(c, r->meta.ns, r->meta.name);
    arena_reset(&config->arena, (struct arena_mark){ 0 });
    struct json *object = aim_record_object(&config->arena, resource, r);
    json_del(object, S("status"));
    config->kept.object = object;
    config->spec = runtimeconfig_spec_read(json_get(object, "spec"), config->cluster);
    aim_resolve_hash(object, config->kept.hash);
    *ret_changed = strcmp(before, config->kept.hash) != 0;
    return config;
}

/* Consumers stay tracked but are left without a configuration; the caller links them again. */
static void free_config(struct aim_config *config)
{
    for (struct aim_config_link *l;
         (l = list_first(&config->consumers, struct aim_config_link, item));) {
        list_remove(&l->item);
        l->config = NULL;
    }
    arena_done(&config->arena);
    free(config->key);
    free(config);
}

void aim_configs_drop(struct aim_configs *c, str ns, str name)
{
    struct aim_config *config = aim_configs_find(c, ns, name);
    if (!config)
        return;
    map_del(&c->by_key, str_c(config->key));
    free_config(config);
}

void aim_configs_done(struct aim_configs *c)
{
    for (struct map_slot *s = NULL; (s = map_next(&c->by_key, s));)
        free_config(s->value);
    map_done(&c->by_key);
}

static void unlink_from(struct aim_config *config, struct aim_config_link *link)
{
    list_remove(&link->item);
    config->total--;
    config->by_kind[link->kind]--;
    config->failing -= link->failing;
}

/* Keeps the counts of both configurations correct; the caller enqueues their status if they changed. */
bool aim_config_link_to(struct aim_config_link *link, struct aim_config *config, bool failing)
{
    if (link->config == config && link->failing == failing)
        return false;
    if (link->config)
        unlink_from(link->config, link);
    link->config = config;
    link->failing = failing;
    if (!config)
        return true;
    list_prepend(&config->consumers, &link->item);
    config->total++;
    config->by_kind[link->kind]++;
    config->failing += failing;
    return true;
}
