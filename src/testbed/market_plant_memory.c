/* Memory in the plant of the market's closed loop: see market_plant.h.
 *
 * A container whose anonymous memory exceeds its limit is killed and starts again after a back-off
 * of 10 to 300 s, with the memory of a fresh start. A node that is full kills the container that is
 * furthest above its request. The hot page cache counts as working set as far as it fits; if it does
 * not, the kernel reclaims and tasks wait, which the policies see as pressure. */
#include "market_plant.h"

#include "../base/sum.h"

#include <math.h>

enum { BACKOFF_FIRST_S = 10, BACKOFF_MOST_S = 300, BACKOFF_RESET_S = 600, SPIKE_S = 300 };
static const double plant_mib = 1024.0 * 1024.0;

/* A number in [0, 1) that changes slowly: interpolated between random points 10 min apart. */
static double slow_noise(uint64_t seed, int64_t second)
{
    double at = (double)second / 600, whole = floor(at), part = at - whole, ends[2];
    for (int k = 0; k < 2; k++) {
        int64_t step = (int64_t)whole + k;
        ends[k] = (double)(sum64((str){ (const char *)&step, sizeof(step) }, seed) >> 11) * 0x1p-53;
    }
    return ends[0] + (ends[1] - ends[0]) * part;
}

double plant_memory_at(const struct plant_memory *m, uint64_t seed, int64_t second,
                       int64_t running_s)
{
    static const double pi = 3.14159265358979, day_s = 86400;
    double t = (double)second, more = m->most - m->base;
    switch (m->shape) {
    case PLANT_MEMORY_DAILY:
        return m->base + more * (1 - cos(2 * pi * t / day_s)) / 2;
    case PLANT_MEMORY_WALK:
        return m->base + more * slow_noise(seed, second);
    case PLANT_MEMORY_LEAK:
        return fmin(m->base + m->rate * (double)running_s / 3600, m->most);
    case PLANT_MEMORY_SPIKE:
        return fmod(t, m->period_s) >= m->period_s - SPIKE_S ? m->most : m->base;
    case PLANT_MEMORY_PEAK:
        return fmod(t, day_s) >= 10 * 3600 && fmod(t, day_s) < 12 * 3600 ? m->most : m->base;
    case PLANT_MEMORY_STEP:
        return fmod(t, day_s) >= day_s / 2 ? m->most : m->base;
    case PLANT_MEMORY_RISE: {
        double at = fmod(t, m->period_s) - (m->period_s - 120);
        return m->base + (at > 0 ? more * fmin(at / 60, 1) : 0);
    }
    default:
        return m->base;
    }
}

bool plant_resize_memory(struct plant *p, struct plant_pod *pod, int64_t limit, int64_t request)
{
    struct plant_memory *m = &pod->memory;
    if (!m->shape || m->resizing || p->second - m->changed_s < 5 || request > limit ||
        (limit == m->limit && request == m->request))
        return false;
    m->next_limit = limit;
    m->next_request = request;
    m->resizing = true;
    m->changed_s = p->second;
    pod->changes++;
    return true;
}

static void finish_resize(struct plant *p, struct plant_memory *m)
{
    if (!m->resizing || p->second <= m->changed_s)
        return;
    m->resizing = false;
    m->request = m->next_request;
    if (m->next_limit >= m->limit || m->next_limit > m->working_set)
        m->limit = m->next_limit;
    m->request = MIN(m->request, m->limit);
}

static void kill_container(struct plant *p, struct plant_memory *m)
{
    bool calm = p->second - m->started_s > BACKOFF_RESET_S || !m->backoff_s;
    m->backoff_s = calm ? BACKOFF_FIRST_S : MIN(2 * m->backoff_s, (int64_t)BACKOFF_MOST_S);
    m->oom_kills++;
    m->down_until_s = m->started_s = p->second + m->backoff_s;
    m->working_set = 0;
}

static void run_container(struct plant *p, struct plant_pod *pod)
{
    struct plant_memory *m = &pod->memory;
    finish_resize(p, m);
    m->pressed = false;
    if (p->second < m->down_until_s)
        return;
    double anon = plant_memory_at(m, pod->load.seed, p->second, p->second - m->started_s);
    double limit = (double)m->limit / plant_mib;
    if (anon > limit) {
        kill_container(p, m);
        return;
    }
    m->pressed = anon + m->hot > limit;
    m->working_set = (int64_t)(fmin(anon + m->hot, limit) * plant_mib);
    m->used += (double)m->working_set;
    m->reserved += (double)m->request;
}

/* The kernel's choice, roughly: who is furthest above what was reserved for it. */
static void relieve_node(struct plant *p, int node)
{
    int64_t used = 0, most = INT64_MIN;
    struct plant_memory *worst = NULL;
    for (size_t i = 0; i < p->pod_n; i++) {
        struct plant_memory *m = &p->pods[i].memory;
        if (!m->shape || p->pods[i].node != node)
            continue;
        int64_t anon = MAX(m->working_set - (int64_t)(m->hot * plant_mib), (int64_t)0);
        used += anon; /* the page cache is dropped before anything is killed */
        if (anon - m->request > most) {
            most = anon - m->request;
            worst = m;
        }
    }
    if (worst && used > p->memory[node])
        kill_container(p, worst);
}

void plant_run_memory(struct plant *p)
{
    for (size_t i = 0; i < p->pod_n; i++)
        if (p->pods[i].memory.shape)
            run_container(p, &p->pods[i]);
    for (int node = 0; node < (int)p->node_n; node++)
        if (p->memory[node])
            relieve_node(p, node);
}
