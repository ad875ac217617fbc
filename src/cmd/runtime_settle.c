/* After the start: the code that ran once, for certificates, configuration and the first handshake, and the
 * tables by which the libraries were linked need not stay in memory. Pages of programs and libraries come back
 * from the page cache when they are used, so letting them all go costs some page faults, and of 10 MB the
 * work needs 5. */
#include "runtime_internal.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that may not be written to are as they are in the file: what linking changed and then protected
 * belongs to those that may. */
static int let_go(struct dl_phdr_info *object, size_t size UNUSED, void *context UNUSED)
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

void runtime_settle(void)
{
    dl_iterate_phdr(let_go, NULL);
    malloc_trim(0);
}
