/* Rules of in-place resizing: see resize_core.h.
 *
 * Kubernetes rejects a resize that changes the QoS class, so a request must stay below its limit
 * in every container of a Burstable pod. The split is done twice with the market's own kernel:
 * first the limit in proportion to the original resources, then the request in proportion to the
 * limits, capped one millicore below them. Containers whose share would be below SHARE_MIN_MILLI
 * get that minimum first, and the others share the rest. Sums are exact, so neither the pod's
 * amount nor the shares drift with repeated resizes. */
#include "resize_core.h"

#include "clear_core.h"

#include "../base/quantity.h"

#include <math.h>

/* ---- QoS */

/* Parses the quantity; false if it is missing, invalid or zero. */
static bool parse_amount(const struct json *list, const char *resource, struct quantity *ret)
{
    return json_is(json_get(list, resource), JSON_STR) &&
           quantity_parse(json_text(json_get(list, resource)), ret, NULL) == 0 &&
           !quantity_is_zero(ret);
}

static const char *const qos_resources[] = { "cpu", "memory" };

/* A missing request needs no handling: the API server sets it to the limit before it stores the
 * object. */
static bool is_guaranteed(const struct json *resources)
{
    for (size_t i = 0; i < countof(qos_resources); i++) {
        struct quantity request, limit;
        if (!parse_amount(json_get(resources, "limits"), qos_resources[i], &limit) ||
            !parse_amount(json_get(resources, "requests"), qos_resources[i], &request) ||
            quantity_cmp(&request, &limit) != 0)
            return false;
    }
    return true;
}

static bool has_resources(const struct json *resources)
{
    struct quantity q;
    for (size_t i = 0; i < countof(qos_resources); i++)
        if (parse_amount(json_get(resources, "limits"), qos_resources[i], &q) ||
            parse_amount(json_get(resources, "requests"), qos_resources[i], &q))
            return true;
    return false;
}

enum qos resize_qos_class(const struct json *containers)
{
    bool guaranteed = json_len(containers) > 0, anything = false;
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *resources = json_get(json_item(containers, i), "resources");
        guaranteed &= is_guaranteed(resources);
        anything |= has_resources(resources);
    }
    return guaranteed ? QOS_GUARANTEED : anything ? QOS_BURSTABLE : QOS_BEST_EFFORT;
}

const char *resize_qos_name(enum qos qos)
{
    static const char *const names[QOS_N] = { "BestEffort", "Burstable", "Guaranteed" };
    return names[qos];
}

/* ---- bounds of a step */

static int64_t step_base(int64_t current)
{
    return MAX(current, (int64_t)100);
}

int64_t resize_step_max(int64_t current)
{
    return MIN((int64_t)(STEP_FACTOR_MAX * (double)step_base(current)),
               current + STEP_DELTA_MAX_MILLI);
}

static int64_t nearest_allowed(int64_t current, int64_t desired)
{
    int64_t least = MAX((int64_t)ceil((double)step_base(current) / STEP_FACTOR_MAX),
                        current - STEP_DELTA_MAX_MILLI);
    return desired > current ? MIN(desired, resize_step_max(current)) : MAX(desired, least);
}

struct resize_step resize_step_check(struct arena *a, int64_t current, int64_t desired,
                                     int64_t since_last_ns)
{
    if (since_last_ns >= 0 && since_last_ns < STEP_COOLDOWN_NS)
        return (struct resize_step){
            STEP_COOLDOWN, current, STEP_COOLDOWN_NS - since_last_ns,
            arena_printf(a, "the last change was %.1f s ago; the next is allowed after 5 s",
                         (double)since_last_ns / 1e9)
        };
    if (desired <= 0)
        return (struct resize_step){ STEP_NOT_POSITIVE, current, 0,
                                     S("step size exceeded: desired CPU must be > 0") };
    if (desired == current)
        return (struct resize_step){ STEP_OK, desired, 0, S("") };
    int64_t delta = desired > current ? desired - current : current - desired;
    if (delta > STEP_DELTA_MAX_MILLI)
        return (struct resize_step){
            STEP_TOO_LARGE, nearest_allowed(current, desired), 0,
            arena_printf(a, "step size exceeded: absolute change %lldm exceeds maximum %lldm",
                         (long long)delta, (long long)STEP_DELTA_MAX_MILLI)
        };
    double base = (double)MAX(current, (int64_t)100), wanted = (double)desired;
    double factor = wanted > base ? wanted / base : base / wanted;
    if (factor > STEP_FACTOR_MAX)
        return (struct resize_step){
            STEP_TOO_LARGE, nearest_allowed(current, desired), 0,
            arena_printf(a, "step size exceeded: change factor %.2fx exceeds maximum %.2fx", factor,
                         STEP_FACTOR_MAX)
        };
    return (struct resize_step){ STEP_OK, desired, 0, S("") };
}

/* ---- split */

/* Gives the minimum to every container whose share by weight would be smaller. Each time, the
 * shares of the others shrink, so the check is repeated. Returns how many are left (first in
 * `order`) and subtracts what was given from `*total`. */
static size_t give_minimums(int64_t *total, const int64_t *weights, size_t n, size_t *order,
                            int64_t *out)
{
    for (bool again = true; again;) {
        double sum = 0;
        again = false;
        for (size_t k = 0; k < n; k++)
            sum += (double)weights[order[k]];
        for (size_t k = 0; k < n && !again; k++) {
            size_t i = order[k];
            if ((double)*total * (double)weights[i] >= (double)SHARE_MIN_MILLI * sum)
                continue;
            out[i] = SHARE_MIN_MILLI;
            *total -= SHARE_MIN_MILLI;
            order[k] = order[--n];
            again = true;
        }
    }
    return n;
}

/* Divides `total` by weight, with a common minimum and a cap for each, using the market's own
 * kernel. */
static void divide_by_weight(int64_t total, const int64_t *weights, const int64_t *caps, size_t n,
                             int64_t *out)
{
    struct clear_scratch scratch = { 0 };
    auto_free struct bid *bids = mem_zero(n, sizeof(*bids));
    auto_free size_t *order = mem_zero(n, sizeof(*order));
    auto_free int64_t *shares = mem_zero(n, sizeof(*shares));
    int64_t heaviest = 1, left = total;
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
        heaviest = MAX(heaviest, weights[i]);
    }
    size_t free_n = give_minimums(&left, weights, n, order, out);
    for (size_t k = 0; k < free_n; k++)
        bids[k] = (struct bid){
            .max_milli = caps[order[k]],
            .weight = fmax(0.001, CLEAR_WEIGHT_MAX * (double)weights[order[k]] / (double)heaviest),
        };
    left -= market_clear(left, bids, free_n, &scratch, shares).total_milli;
    for (size_t k = 0; k < free_n; k++)
        out[order[k]] = shares[k];
    for (size_t i = 0; i < n && left > 0; i++) { /* what the caps of the others left */
        int64_t more = MIN(left, caps[i] - out[i]);
        out[i] += more;
        left -= more;
    }
    clear_scratch_done(&scratch);
}

int resize_split(int64_t limit_milli, int64_t request_milli, struct container_share *shares,
                 size_t n, err_t *e)
{
    auto_free int64_t *numbers = mem_zero(n * 4, sizeof(*numbers));
    int64_t *weights = numbers, *caps = numbers + n, *limits = numbers + 2 * n,
            *requests = numbers + 3 * n;
    size_t free_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (shares[i].fixed) {
            limit_milli -= shares[i].limit_milli;
            request_milli -= shares[i].request_milli;
        } else {
            weights[free_n] = shares[i].weight_milli;
            caps[free_n++] = CLEAR_MILLI_MAX;
        }
    }
    int64_t floor_milli = (int64_t)free_n * SHARE_MIN_MILLI;
    if (free_n == 0 || limit_milli <= floor_milli || request_milli < floor_milli)
        return err_set(
            e, ERANGE,
            "a CPU limit of %lldm and a request of %lldm are too small for %zu containers",
            (long long)limit_milli, (long long)request_milli, free_n);
    divide_by_weight(limit_milli, weights, caps, free_n, limits);
    for (size_t k = 0; k < free_n; k++)
        caps[k] = MAX(limits[k] - 1, SHARE_MIN_MILLI);
    divide_by_weight(request_milli, limits, caps, free_n, requests);
    for (size_t i = 0, k = 0; i < n; i++) {
        if (shares[i].fixed)
            continue;
        shares[i].limit_milli = limits[k];
        shares[i].request_milli = requests[k++];
    }
    return 0;
}

void resize_room_add(struct resize_room *room, const struct container_share *share)
{
    if (share->fixed) {
        room->fixed_limit += share->limit_milli;
        room->fixed_request += share->request_milli;
    } else {
        room->movable++;
    }
}

int64_t resize_limit_within(const struct resize_room *room, int64_t limit_milli)
{
    return MAX(limit_milli, room->fixed_limit + room->movable * (SHARE_MIN_MILLI + 1));
}

int64_t resize_request_within(const struct resize_room *room, int64_t limit_milli,
                              int64_t request_milli)
{
    int64_t movable_limit = limit_milli - room->fixed_limit;
    int64_t most = room->fixed_request + movable_limit - room->movable;
    int64_t least = room->fixed_request + room->movable * SHARE_MIN_MILLI;
    return MAX(MIN(request_milli, most), least);
}
