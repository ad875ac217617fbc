/* Requests that follow shares: see request_core.h.
 *
 *      set_due_falls()     falls that are written anyway, or must be (request >= limit)
 *         |
 *         v
 *      make_room()         while rises do not fit: the largest surplus falls to its target
 *         |
 *         v
 *      grant_rises()       the rises that are due, water-filled into the room
 *
 * A change is due if the pod is patched anyway, or if it is larger than a quarter of the request
 * plus 10 millicores and the last one is a minute ago. */
#include "request_core.h"

enum { CHANGE_INTERVAL_S = 60, REQUEST_LEAST = 10 };

struct plan {
    struct request_pod *pods;
    size_t n;
    int64_t *targets;
    bool *due;
    int64_t room;
};

const char *request_reason_name(enum request_reason reason)
{
    static const char *const names[REQUEST_REASON_N] = { "keep", "set", "deferred" };
    return names[reason];
}

static int64_t target_of(const struct request_pod *pod)
{
    int64_t share = MAX(pod->share_milli, (int64_t)REQUEST_LEAST);
    if (pod->guaranteed)
        return share;
    int64_t wanted = pod->held_milli > 0 ? pod->held_milli : share;
    return MAX(MIN(wanted, pod->limit_milli - 1), INT64_C(1));
}

static bool must_fall(const struct request_pod *pod)
{
    return !pod->guaranteed && pod->request_milli >= pod->limit_milli;
}

/* Is a change by this much worth a patch of its own? */
static bool is_worth_patch(int64_t change_milli, int64_t request_milli)
{
    return 4 * (change_milli < 0 ? -change_milli : change_milli) > request_milli + 40;
}

static bool is_due(const struct request_pod *pod, int64_t target)
{
    if (!pod->writable || target == pod->request_milli)
        return false;
    return pod->with_limit || must_fall(pod) ||
           (is_worth_patch(target - pod->request_milli, pod->request_milli) &&
            pod->since_s >= CHANGE_INTERVAL_S);
}

static void set_request(struct plan *p, size_t i, int64_t request_milli)
{
    p->room += p->pods[i].request_milli - request_milli;
    p->pods[i].request_milli = request_milli;
    p->pods[i].reason = REQUEST_SET;
}

static int64_t surplus_of(const struct plan *p, size_t i)
{
    return p->pods[i].writable ? p->pods[i].request_milli - p->targets[i] : 0;
}

static void set_due_falls(struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (surplus_of(p, i) > 0 && (p->pods[i].with_limit || must_fall(&p->pods[i])))
            set_request(p, i, p->targets[i]);
}

/* Lowers requests above their target, largest surplus first, until `wish` fits. A surplus that is
 * not due counts only while the requests exceed what the node can allocate. */
static void make_room(struct plan *p, int64_t wish)
{
    while (p->room < wish || p->room < 0) {
        size_t best = p->n;
        int64_t most = 0;
        for (size_t i = 0; i < p->n; i++) {
            int64_t surplus = surplus_of(p, i);
            if (surplus <= most || (!p->due[i] && p->room >= 0))
                continue;
            most = surplus;
            best = i;
        }
        if (best == p->n)
            return;
        set_request(p, best, p->targets[best]);
    }
}

/* Raises what is due into the room. A part of a rise is written only if it is worth a patch. */
static void grant_rises(struct plan *p, const struct bid *rises, int64_t wish,
                        struct clear_scratch *scratch, struct arena *a)
{
    int64_t *x = arena_array(a, p->n, sizeof(*x));
    market_clear(MAX(MIN(p->room, wish), INT64_C(0)), rises, p->n, scratch, x);
    for (size_t i = 0; i < p->n; i++) {
        struct request_pod *pod = &p->pods[i];
        if (!rises[i].max_milli)
            continue;
        bool whole = x[i] == rises[i].max_milli;
        if (x[i] > 0 && (whole || pod->with_limit || is_worth_patch(x[i], pod->request_milli)))
            set_request(p, i, pod->request_milli + x[i]);
        pod->reason = whole ? REQUEST_SET : REQUEST_DEFERRED;
    }
}

int64_t request_settle(int64_t allocatable_milli, struct request_pod *pods, size_t n,
                       struct clear_scratch *scratch, struct arena *a)
{
    struct plan p = { .pods = pods, .n = n, .room = allocatable_milli };
    p.targets = arena_array(a, n, sizeof(*p.targets));
    p.due = arena_array(a, n, sizeof(*p.due));
    struct bid *rises = arena_array(a, n, sizeof(*rises));
    int64_t wish = 0;
    for (size_t i = 0; i < n; i++) {
        pods[i].reason = REQUEST_KEEP;
        p.room -= pods[i].request_milli;
        p.targets[i] = target_of(&pods[i]);
        p.due[i] = is_due(&pods[i], p.targets[i]);
        int64_t rise = p.due[i] ? p.targets[i] - pods[i].request_milli : 0;
        rises[i] = (struct bid){ .max_milli = MAX(rise, INT64_C(0)), .weight = 1 };
        wish += rises[i].max_milli;
    }
    set_due_falls(&p);
    make_room(&p, wish);
    grant_rises(&p, rises, wish, scratch, a);
    return p.room;
}
