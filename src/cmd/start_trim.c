/* Releases memory twice after the start: see start_trim.h. Code that ran once (certificates, configuration, the first
 * handshake) and the tables for linking need not stay resident. Pages of programs and libraries
 * are read again from the page cache when they are used, so releasing all of them costs some
 * page faults, and of 10 MB the work needs 5. */
#include "start_trim.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/* Read-only segments are identical to the file: pages that the linker changed and then protected
 * belong to writable ones. */
static int release_object(struct dl_phdr_info *object, size_t size UNUSED, void *context UNUSED)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t from = object->dlpi_addr + part->p_vaddr, whole = from & ~(page - 1);
        if (part->p_type == PT_LOAD && !(part->p_flags & PF_W))
            madvise((void *)whole, from + part->p_memsz - whole, MADV_DONTNEED);
    }
    return 0;
}

static const int64_t after_ns[] = { 2 * NS_PER_S, 40 * NS_PER_S }; /* the start; the first work */

static void schedule_next(struct start_trim *t);

static void on_timer(struct timer *timer)
{
    dl_iterate_phdr(release_object, NULL);
    malloc_trim(0);
    schedule_next(container_of(timer, struct start_trim, timer));
}

static void schedule_next(struct start_trim *t)
{
    if (t->scheduled < countof(after_ns))
        timer_set(t->loop, &t->timer,
                  loop_mono_ns(t->loop) + (int64_t)((double)after_ns[t->scheduled++] * t->speed),
                  on_timer);
}

void start_trim_begin(struct start_trim *t, struct loop *loop, double speed)
{
    *t = (struct start_trim){ .loop = loop, .speed = speed };
    schedule_next(t);
}

void start_trim_end(struct start_trim *t)
{
    timer_stop(&t->timer);
}
