/* Timers: a heap of nodes inside their owners, ordered by the loop's monotonic clock. See loop.h.
 */
#include "loop_internal.h"

void timer_set(struct loop *loop, struct timer *timer, int64_t mono_ns,
               void (*fire)(struct timer *))
{
    CHECK(loop, LOOP_MAGIC);
    assert(!timer->loop || timer->loop == loop);
    timer->loop = loop;
    timer->fire = fire;
    heap_put(&loop->timers, &timer->node, mono_ns);
}

void timer_stop(struct timer *timer)
{
    if (timer->loop)
        heap_del(&timer->loop->timers, &timer->node);
}

bool loop_has_due_timer(const struct loop *loop)
{
    const struct heap_node *next = heap_min(&loop->timers);
    return next && next->key <= loop->mono_ns;
}

static void on_alarm(uv_timer_t *alarm UNUSED)
{
    /* Only wakes uv_run(); loop_fire_timers() reads the heap. */
}

void loop_set_alarm(struct loop *loop)
{
    struct heap_node *next = heap_min(&loop->timers);
    if (!next) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    int64_t wait_ns = 0;
    if (next->key > loop->mono_ns)
        wait_ns = next->key - loop->mono_ns;
    if (loop->time == LOOP_SCALED)
        wait_ns = (int64_t)((double)wait_ns / loop->speed);
    /* mono_ns does not include the time that this turn has taken so far, so the alarm may be late
     * by that. Rounding up avoids waking early; an early wakeup would only cost another turn. */
    uint64_t wait_ms = (uint64_t)(wait_ns / NS_PER_MS + (wait_ns % NS_PER_MS != 0));
    uv_update_time(&loop->uv);
    /* Repeats, because libuv before 1.45 fires a due timer and then still waits, for the next one:
     * that wait must end. */
    uv_timer_start(&loop->alarm, on_alarm, wait_ms, 1);
}

/* Fires only timers that were set before firing began. One that sets itself again for now waits for
 * the next turn, so that descriptors are not starved. */
void loop_fire_timers(struct loop *loop)
{
    uint64_t last = loop->timers.counter;
    struct heap_node *node;
    while ((node = heap_min(&loop->timers)) && node->key <= loop->mono_ns && node->order <= last) {
        heap_del(&loop->timers, node);
        struct timer *timer = container_of(node, struct timer, node);
        timer->fire(timer);
    }
}

int64_t loop_scale_timeout(const struct loop *loop, int64_t timeout_ns)
{
    if (loop->time != LOOP_SCALED)
        return timeout_ns;
    return (int64_t)((double)timeout_ns * loop->speed);
}
