/* Our own last write to an object, until the watch has delivered it. It answers two questions:
 *
 *   - what does the object have now? The server's answer arrives before the watch event, and a turn in between
 *     would decide with the old state: emit every event twice, send the same patch again, or treat our own
 *     write as the change of another client. own_write_is_pending(), own_write_json()
 *   - is a change that the watch delivers our own? Most changes of a status are, and need no turn, because the
 *     turn that wrote them already knew the result. own_write_is_ours(), for features that ask
 *
 * Nothing here has to survive: after a restart the cache is read again. */
#ifndef FLYBALL_KUBE_OWN_WRITE_H
#define FLYBALL_KUBE_OWN_WRITE_H

#include "../json/project.h"
#include "client.h"

enum { OWN_WRITE_BETWEEN = 4 }; /* writes that the watch may lag behind */

struct own_write {    /* `{0}`: nothing was written yet */
    uint64_t before;  /* hash of the version that was written to; 0: the cache is current */
    uint64_t version; /* hash of the version that the last write produced */
    int64_t number;   /* the same as a number; 0: it is none */
    uint64_t between[OWN_WRITE_BETWEEN]; /* hashes of our versions from `before` to `version` */
    uint64_t seen;     /* hash of the last version that the watch delivered during a write */
    char *text;        /* owned; what the object has since the write; NULL: the cache is current */
    int64_t until_ns;  /* see own_write_hold(); 0: not held */
    unsigned seen_n;   /* versions that the watch delivered during a write */
    bool is_under_way; /* a write was sent and is not answered */
};

void own_write_done(struct own_write *w); /* also forgets a pending write */

/* ---- writing */

/* Before sending; only needed for own_write_is_ours(). */
void own_write_begin(struct own_write *w);
/* The answer, of any kind. After a success, `text` is what the object has until the cache has this version or a
 * later one; or, where versions are not numbers, until it has another one than `before_rv` and those of our own writes since. Returns true if the watch delivered changes of other clients during the write: with
 * own_write_is_ours(), a turn is then needed. */
bool own_write_end(struct own_write *w, const struct kube_reply *reply, str before_rv, str text);
/* Keeps `text` valid until the cache has exactly the version that was written, but no longer than until `until_ns`:
 * for objects that one turn writes more than once, because the watch delivers the versions in between too. */
void own_write_hold(struct own_write *w, int64_t until_ns);

/* ---- reading */

/* Does the cache, which has this version, still lack our write? If not, the write is forgotten. `now_ns` is compared
 * with that of own_write_hold(). */
bool own_write_is_pending(struct own_write *w, str cached_rv, int64_t now_ns);
/* The text of a pending write as JSON; NULL: use the cache. */
struct json *own_write_json(struct own_write *w, struct arena *a, str cached_rv, int64_t now_ns);
/* Is this change our own? During a write all are assumed to be; own_write_end() corrects that. */
bool own_write_is_ours(struct own_write *w, const struct record *now);

#endif
