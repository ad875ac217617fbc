/* The Vertical Pod Autoscaler's recommender as pure functions, to compare the market with: see vpa_model.h.
 *
 *     CPU samples ----------------> histogram of cores --+
 *     memory samples --daily peak-> histogram of bytes --+--> percentile, +15 %, bounds by confidence
 *
 * Histograms have exponential buckets (each 5 % wider than the one before) and decay with a half-life of a
 * day. Decay is implemented the other way round, as in the original: old weights stay, and new ones grow as
 * 2^(age of the reference); after 100 half-lives all weights are scaled down so that they do not overflow.
 *
 * Memory counts one peak per day: a higher sample replaces the day's lower one in the histogram. An
 * out-of-memory kill counts as a peak of the request plus 20 % or 100 MiB, whichever is more.
 *
 * Amounts are truncated to whole millicores and bytes after every step, as the original does; rounding once
 * at the end would differ from its recommendations in the last digit. */
#include "vpa_model.h"

#include <math.h>

static const double bucket_ratio = 1.05, weight_min = 1e-4;
static const double cpu_weight = 0.1, memory_weight = 1.0;
static const double half_life_s = 86400;
static const int64_t day_s = 86400;
static const double amount_max = 1e14;

/* ---- histogram */

static void histogram_init(struct vpa_histogram *h, double first, double max)
{
    *h = (struct vpa_histogram){ .first = first };
    h->n = (size_t)ceil(log(max * (bucket_ratio - 1) / first + 1) / log(bucket_ratio)) + 1;
    assert(h->n <= VPA_BUCKETS_MAX);
}

static size_t find_bucket(const struct vpa_histogram *h, double value)
{
    if (value < h->first)
        return 0;
    double k = floor(log(value * (bucket_ratio - 1) / h->first + 1) / log(bucket_ratio));
    return MIN((size_t)k, h->n - 1);
}

static double bucket_start(const struct vpa_histogram *h, size_t k)
{
    return h->first * (pow(bucket_ratio, (double)k) - 1) / (bucket_ratio - 1);
}

/* The weight of a sample at `at_s` relative to the reference, which is moved first if it is too far in the past. */
static double scale_weight(struct vpa_histogram *h, double weight, int64_t at_s)
{
    if (!h->reference_s || (double)(at_s - h->reference_s) > 100 * half_life_s) {
        int64_t nearest = (at_s + day_s / 2) / day_s * day_s;
        double scale = h->reference_s ? exp2((double)((h->reference_s - nearest) / day_s)) : 1;
        h->total *= scale;
        for (size_t i = 0; i < h->n; i++)
            h->weight[i] *= scale;
        h->reference_s = nearest;
    }
    return weight * exp2((double)(at_s - h->reference_s) / half_life_s);
}

static void histogram_add(struct vpa_histogram *h, double value, double weight, int64_t at_s)
{
    double now = scale_weight(h, weight, at_s);
    h->weight[find_bucket(h, value)] += now;
    h->total += now;
}

static void histogram_subtract(struct vpa_histogram *h, double value, double weight, int64_t at_s)
{
    double now = scale_weight(h, weight, at_s);
    size_t k = find_bucket(h, value);
    h->weight[k] = fmax(0, h->weight[k] - now);
    h->total = fmax(0, h->total - now);
}

/* The upper end of the bucket that holds the percentile, the original's choice; the last bucket has none, so
 * its start. */
double vpa_percentile(const struct vpa_histogram *h, double share)
{
    size_t first = 0, last = h->n - 1;
    while (first < h->n && h->weight[first] < weight_min)
        first++;
    if (first == h->n)
        return 0;
    while (last > first && h->weight[last] < weight_min)
        last--;
    double sum = 0, threshold = share * h->total;
    size_t k = first;
    for (; k < last; k++)
        if ((sum += h->weight[k]) >= threshold)
            break;
    return k + 1 < h->n ? bucket_start(h, k + 1) : bucket_start(h, k);
}

/* ---- samples */

void vpa_init(struct vpa *vpa)
{
    *vpa = (struct vpa){ 0 };
    histogram_init(&vpa->cpu, 0.01, 1000);
    histogram_init(&vpa->memory, 1e7, 1e12);
}

void vpa_add_cpu(struct vpa *vpa, int64_t at_s, double cores)
{
    if (cores < 0 || (vpa->samples && at_s <= vpa->last_cpu_s))
        return;
    histogram_add(&vpa->cpu, cores, cpu_weight, at_s);
    if (!vpa->samples++)
        vpa->first_cpu_s = at_s;
    vpa->last_cpu_s = at_s;
}

/* Replaces the day's peak if this one is higher, or begins the next day's window. */
static void add_peak(struct vpa *vpa, int64_t at_s, double bytes, bool oom)
{
    vpa->last_memory_s = at_s;
    if (!vpa->window_end_s)
        vpa->window_end_s = at_s;
    if (at_s < vpa->window_end_s) {
        double old = fmax(vpa->peak_bytes, vpa->oom_peak_bytes);
        if (old == 0 || bytes <= old)
            return;
        histogram_subtract(&vpa->memory, old, memory_weight, vpa->window_end_s);
    } else {
        vpa->window_end_s += (at_s - vpa->window_end_s) / day_s * day_s + day_s;
        vpa->peak_bytes = vpa->oom_peak_bytes = 0;
    }
    histogram_add(&vpa->memory, bytes, memory_weight, vpa->window_end_s);
    *(oom ? &vpa->oom_peak_bytes : &vpa->peak_bytes) = bytes;
}

void vpa_add_memory(struct vpa *vpa, int64_t at_s, double bytes)
{
    if (bytes >= 0 && at_s >= vpa->last_memory_s)
        add_peak(vpa, at_s, bytes, false);
}

void vpa_add_oom(struct vpa *vpa, int64_t at_s, double requested_bytes)
{
    static const double bump_bytes = 100.0 * 1024 * 1024, bump_ratio = 1.2;
    if (at_s < vpa->last_memory_s - day_s)
        return;
    double used = fmax(requested_bytes, vpa->peak_bytes);
    add_peak(vpa, at_s, fmax(used + bump_bytes, trunc(used * bump_ratio)), true);
}

/* ---- recommendation */

static int64_t truncate_amount(double amount)
{
    return (int64_t)fmin(amount, amount_max);
}

/* A percentile with the safety margin of 15 % and a multiplier, but at least `least`. */
static int64_t estimate_amount(double percentile, double multiplier, double least)
{
    int64_t amount = truncate_amount(percentile);
    amount += truncate_amount((double)amount * 0.15);
    return MAX(truncate_amount((double)amount * multiplier), (int64_t)least);
}

static struct vpa_amount estimate_both(const struct vpa *vpa, double share, double multiplier,
                                       int containers)
{
    return (struct vpa_amount){
        estimate_amount(vpa_percentile(&vpa->cpu, share) * 1000, multiplier, 25.0 / containers),
        estimate_amount(vpa_percentile(&vpa->memory, share), multiplier,
                        250.0 * 1024 * 1024 / containers),
    };
}

struct vpa_recommendation vpa_recommend(const struct vpa *vpa, int containers_in_pod)
{
    double days = (double)(vpa->last_cpu_s - vpa->first_cpu_s) / (double)day_s;
    double confidence = fmin(days, (double)vpa->samples / 1440);
    return (struct vpa_recommendation){
        .target = estimate_both(vpa, 0.9, 1, containers_in_pod),
        .lower = estimate_both(vpa, 0.5, pow(1 + 0.001 / confidence, -2), containers_in_pod),
        .upper = estimate_both(vpa, 0.95, 1 + 1 / confidence, containers_in_pod),
    };
}
