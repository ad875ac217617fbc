/* Releases memory after startup. Code that ran once (certificates, configuration, the first
 * handshake) and the tables for linking need not stay resident. Pages of programs and libraries
 * are read again from the page cache when they are used, so releasing all of them costs some
 * page faults, and of 10 MB the work needs 5. */
#include "runtime_internal.h"

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

void runtime_trim(void)
{
    dl_iterate_phdr(release_object, NULL);
    malloc_trim(0);
}
