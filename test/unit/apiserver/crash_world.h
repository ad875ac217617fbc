/* A store under random work on a simulated disk (crash_disk.h), checked against a model of what it must hold.
 *
 * The model is the list of all writes so far and how many of them were acknowledged. At each sync, and at random points
 * between, copies of the disk as a crash would leave it are opened with the real start-up code and compared with it:
 * crash_test.c lists what must hold. A run goes on from what a crash left, so it has several lives; everything follows
 * from its seed.
 *
 * A caller fills in a struct crash_world (seed, counts, and how often what happens), and calls crash_world_run(), or the
 * steps below one by one. The simulated disk must be installed (crash_vfs_install). */
#ifndef FLYBALL_CRASH_WORLD_H
#define FLYBALL_CRASH_WORLD_H

#include "apiserver/store/store.h"
#include "crash_disk.h"

enum { CRASH_WORLD_SEEN_SLOTS = 1 << 22 };

struct crash_counts {
    uint64_t states, kinds[CRASH_KIND_N], tampered, tampered_refused, repeated, failed;
    uint64_t commits, refused, taken_full, checkpoints, lives, runs, syncs, writes;
};

struct crash_world_write { /* of the model */
    struct object *now;    /* owned reference */
    int64_t prev_rev;
};

struct crash_world {
    struct random random;
    struct crash_disk *live, *next; /* next: what a crash has left of live */
    struct store *store;
    VEC(struct crash_world_write) writes;
    size_t acked;      /* of `writes` */
    size_t in_flight;  /* of them, after those: the transaction that is being written */
    int64_t compacted; /* of the history, after the last acknowledgement */
    struct crash_counts *counts;
    uint64_t *seen; /* sums of states already checked; NULL: do not look */
    char *old_log;  /* a copy of an earlier log, owned */
    size_t old_log_n;
    uint32_t dies_in, full_in; /* points; 0: never */
    uint32_t density;          /* of 16: how many points between syncs are checked */
    bool quiet, checking;
    bool blind;      /* no crash is checked on the way */
    bool dies_late;  /* every life ends in a power failure that keeps only the last writes */
    bool often_full; /* half of the commits */
    bool stays_full; /* a disk that became full stays so for some commits, half of them deletions */
    uint32_t full_for; /* for so many */
    bool known_full;   /* a commit has ended on the full disk: the store knows */
    bool
        lost_reserve; /* to a power failure, and not made again: a full disk may then refuse everything */
    bool needs_room;   /* a write of this batch does */
    const char *doing; /* for the report of a failure */
    uint64_t seed;
};

extern const char *const crash_world_kind_names[CRASH_KIND_N]; /* for reports */

void crash_world_run(struct crash_world *w);   /* a whole run, from an empty disk */
void crash_world_begin(struct crash_world *w); /* an empty disk; end with crash_world_end() */
void crash_world_end(struct crash_world *w);

/* ---- its steps */
/* Starts on what the disk holds; crashes may happen on the way. False: the run must end. */
bool crash_world_start(struct crash_world *w);
void crash_world_run_batch(struct crash_world *w); /* random writes in one commit */
void crash_world_run_tidy(struct crash_world *w, bool idle);
/* Compares what a crash of that kind leaves with the model. */
void crash_world_check_crash(struct crash_world *w, enum crash_kind kind);
/* Compares a store with the model. Returns how many writes it holds, at least `at_least`; -1: it is wrong. */
long crash_world_check_store(struct crash_world *w, const struct store *s, size_t at_least);
/* Removes writes from the end of the model that were never acknowledged and are not in the store. */
void crash_world_forget(struct crash_world *w, size_t keep);
int crash_world_open_store(const char *path, struct store **ret, err_t *e);

#endif
