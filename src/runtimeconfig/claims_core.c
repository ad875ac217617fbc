/* The index of claimed paths: see claims_core.h.
 *
 *     by_place  "ns/gateway /path" -> claim --next_here--> claim      of different holders
 *                                       |                    |
 *                                     holder A             holder B --first--> its claims, by next
 *
 * Keys are owned by the claims and borrowed by the map. Listeners (sections) are compared when a place is looked up,
 * because a claim on all listeners overlaps with a claim on any one.
 *
 * Nothing here decides who gets a path in the cluster: a service asks in its turn, and whenever claims of a place
 * change, the other holders are notified and ask again. */
#include "claims_core.h"

#include "../base/buf.h"

struct aim_claim {
    struct aim_claim_holder *holder;
    struct aim_claim *next_here, *previous_here; /* claims of the same place */
    struct aim_claim *next;                      /* claims of the same holder */
    char *key;                                   /* owned "ns/gateway path" */
    char *section;                               /* owned; "": all listeners */
};

static void put_key(struct buf *out, const struct aim_claim_place *p, str path)
{
    buf_clear(out);
    buf_printf(out, STR_FMT "/" STR_FMT " " STR_FMT, STR_ARG(p->gateway_ns), STR_ARG(p->gateway),
               STR_ARG(path));
    if (p->host.n)
        buf_printf(out, "\nhost " STR_FMT, STR_ARG(p->host));
    if (p->header.n)
        buf_printf(out, "\nheader " STR_FMT, STR_ARG(p->header));
}

static void notify_others(const struct aim_claims *c, const struct aim_claim *claim,
                          aim_claim_disturb_fn *disturb, void *context)
{
    for (struct aim_claim *other = map_get(&c->by_place, str_c(claim->key)); other;
         other = other->next_here)
        if (other->holder != claim->holder)
            disturb(context, other->holder);
}

/* Unlinks and frees a claim; its holder's list is rebuilt by the caller. */
static void remove_claim(struct aim_claims *c, struct aim_claim *claim)
{
    if (claim->next_here)
        claim->next_here->previous_here = claim->previous_here;
    if (claim->previous_here) {
        claim->previous_here->next_here = claim->next_here;
    } else {
        map_del(&c->by_place, str_c(claim->key));
        if (claim->next_here) /* the map borrows the key of its first claim */
            map_put(&c->by_place, str_c(claim->next_here->key), claim->next_here);
    }
    free(claim->key);
    free(claim->section);
    free(claim);
}

/* Adds the claim at the head of both lists; the map then borrows its key. */
static void add_claim(struct aim_claims *c, struct aim_claim_holder *h,
                      const struct aim_claim_place *place, str key)
{
    struct aim_claim *claim = mem_zero(1, sizeof(*claim)), *first = map_get(&c->by_place, key);
    *claim = (struct aim_claim){ .holder = h,
                                 .next_here = first,
                                 .next = h->first,
                                 .key = mem_dup(key.p, key.n),
                                 .section = mem_dup(place->section.p ? place->section.p : "",
                                                    place->section.n) };
    if (first)
        first->previous_here = claim;
    map_put(&c->by_place, str_c(claim->key), claim);
    h->first = claim;
}

/* Does the holder already claim exactly these places? Its list is in reverse order. */
static bool has_same_places(const struct aim_claim *claim, const struct aim_claim_place *places,
                            size_t n)
{
    auto_buf struct buf key = { 0 };
    while (n-- && claim) {
        put_key(&key, &places[n], places[n].path);
        if (!str_eqc(buf_str(&key), claim->key) || !str_eqc(places[n].section, claim->section))
            return false;
        claim = claim->next;
    }
    return !claim && n == SIZE_MAX;
}

/* Others at the old and at the new places are notified: each of them may gain or lose a path. */
void aim_claims_set(struct aim_claims *c, struct aim_claim_holder *h,
                    const struct aim_claim_place *places, size_t n, aim_claim_disturb_fn *disturb,
                    void *context)
{
    auto_buf struct buf key = { 0 };
    if (has_same_places(h->first, places, n))
        return;
    for (struct aim_claim *claim = h->first, *next; claim; claim = next) {
        next = claim->next;
        notify_others(c, claim, disturb, context);
        remove_claim(c, claim);
    }
    h->first = NULL;
    for (size_t i = 0; i < n; i++) {
        put_key(&key, &places[i], places[i].path);
        add_claim(c, h, &places[i], buf_str(&key));
        notify_others(c, h->first, disturb, context);
    }
}

void aim_claims_notify(const struct aim_claims *c, const struct aim_claim_holder *h,
                       aim_claim_disturb_fn *disturb, void *context)
{
    for (const struct aim_claim *claim = h->first; claim; claim = claim->next)
        notify_others(c, claim, disturb, context);
}

bool aim_claims_has_gateway(const struct aim_claim_holder *h, str gateway_ns, str gateway)
{
    auto_buf struct buf key = { 0 };
    put_key(&key, &(struct aim_claim_place){ .gateway_ns = gateway_ns, .gateway = gateway }, S(""));
    for (const struct aim_claim *claim = h->first; claim; claim = claim->next)
        if (str_starts(str_c(claim->key), buf_str(&key)))
            return true;
    return false;
}

void aim_claims_done(struct aim_claims *c)
{
    assert(!c->by_place.n);
    map_done(&c->by_place);
}

/* ---- ownership */

/* The creation time that counts in a comparison; see the rule in the header. */
static int64_t age_of(const struct aim_claim_holder *h, bool among_services)
{
    if (h->foreign || among_services)
        return h->created_ns;
    return h->routed_ns ? h->routed_ns : INT64_MAX;
}

static bool is_older(const struct aim_claim_holder *x, const struct aim_claim_holder *y)
{
    bool services = !x->foreign && !y->foreign;
    int64_t a = age_of(x, services), b = age_of(y, services);
    int by_ns = str_cmp(x->ns, y->ns);
    return a != b ? a < b : (by_ns ? by_ns : str_cmp(x->name, y->name)) < 0;
}

static bool sections_overlap(const struct aim_claim *claim, str section)
{
    return !section.n || !*claim->section || str_eqc(section, claim->section);
}

/* Sections are compared here: claims on different listeners of a gateway do not conflict. */
const struct aim_claim_holder *aim_claims_find_older(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place)
{
    auto_buf struct buf key = { 0 };
    const struct aim_claim_holder *oldest = NULL;
    put_key(&key, place, place->path);
    for (const struct aim_claim *other = map_get(&c->by_place, buf_str(&key)); other;
         other = other->next_here)
        if (other->holder != h && sections_overlap(other, place->section) &&
            is_older(other->holder, h) && (!oldest || is_older(other->holder, oldest)))
            oldest = other->holder;
    return oldest;
}

/* Walks up the path segment by segment; the first hit is the longest. */
const struct aim_claim_holder *aim_claims_find_above(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place,
                                                     str *ret_path)
{
    auto_buf struct buf key = { 0 };
    for (size_t n = place->path.n; n-- > 0;) {
        if (place->path.p[n] != '/' || place->path.n == 1)
            continue;
        str above = str_upto(place->path, n ? n : 1);
        put_key(&key, place, above);
        for (const struct aim_claim *other = map_get(&c->by_place, buf_str(&key)); other;
             other = other->next_here)
            if (other->holder != h && sections_overlap(other, place->section)) {
                *ret_path = above;
                return other->holder;
            }
    }
    return NULL;
}
