/* The controllers, in the order in which they run. Definitions come first, because the others depend on the kinds
 * that are served. */
#include "controllers.h"

const struct server_controller *const controllers_all[] = {
    &definition_controller, &gc_controller,      &claim_controller,
    &namespace_controller,  &roles_controller,   &quota_controller,
    &signer_controller,     &cluster_controller, NULL
};

struct controllers_objects controllers_collect(const struct server *s, str prefix)
{
    struct controllers_objects found = { 0 };
    struct tree_cursor c = tree_seek(store_tree(s->store), prefix);
    for (struct object *o; (o = tree_next_in(&c, prefix));)
        vec_push(&found.all, object_ref(o));
    return found;
}

void controllers_release(struct controllers_objects *objects)
{
    for (size_t i = 0; i < objects->all.n; i++)
        object_unref(objects->all.at[i]);
    vec_done(&objects->all);
}
