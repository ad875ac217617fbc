/* A collection of things behind HTTP, small enough to be obviously right: a list of all that ever
 * happened. It lists in pages, watches, streams initial events, and misbehaves on request. Who accepts protobuf gets
 * protobuf. */
#ifndef FLYBALL_TEST_MODEL_H
#define FLYBALL_TEST_MODEL_H

#include "base/random.h"
#include "base/vec.h"
#include "fake.h"

enum { THINGS = 40 };

enum fault {
    FAULT_NONE,
    FAULT_GONE,     /* 410: as status, or as an event of a watch */
    FAULT_ERROR,    /* 500 */
    FAULT_ABORT,    /* no answer */
    FAULT_GARBAGE,  /* an answer that is no JSON */
    FAULT_CUT,      /* an answer that ends in the middle of an object */
    FAULT_END,      /* a watch that ends at once; a list that is no list */
    FAULT_SILENT,   /* a watch that sends nothing, not even the end */
    FAULT_NO_EVENT, /* a watch event of unknown type */
    FAULT_N
};

/* To a client that accepts protobuf. */
enum offer {
    OFFER_PROTOBUF,
    OFFER_JSON,   /* does not know it */
    OFFER_LIE,    /* JSON under the content type of protobuf */
    OFFER_REFUSE, /* 406 */
};

struct change {
    int thing;
    int64_t size; /* -1: deleted */
};

struct model_watch {
    struct model *m;
    struct exchange *x;
    size_t cursor; /* changes already sent */
    bool initial;  /* sends the state first */
    bool protobuf; /* frames instead of lines */
    bool quiet;    /* ignores what it does not know: no end of the initial events */
    enum fault fault;
    int sent; /* lines since the start */
    struct model_watch *next;
};

struct model {
    struct fake f;
    VEC(struct change) changes; /* rv is the index plus one */
    size_t compacted;           /* changes that a watch cannot begin before */
    struct model_watch *watches;
    struct random random;
    bool streams;         /* knows sendInitialEvents, else refuses it with 400 */
    bool ignores;         /* does not know it and does not report that */
    int lists, expirings; /* complete pages; 410s sent */
    enum fault next_list, next_watch;
    bool random_faults;
    bool refuses_versions; /* 410 for every list or initial events from a version */
    bool away;             /* hangs up on everybody */
    enum offer offer;
    int in_protobuf, in_json; /* requests that accept it, and those that do not */
};

int64_t model_size(const struct model *m, int thing, size_t upto);
void model_change(struct model *m, int thing, int64_t size);
void model_start(struct model *m);
void model_stop(struct model *m);

#endif
