/* Lists: which objects, as of which version, in pages.
 *
 * All pages of a list show one version. The continue token names it and the key to go on with; later pages are
 * computed from the history as of that version (history_state). If the history no longer reaches back that far,
 * the client gets 410 with a token that continues with the current state:
 *
 *     GET ?limit=500              version 70, objects 1..500, continue = {rv: 70, start: "ns/name500\0"}
 *     GET ?limit=500&continue=    version 70, objects 501..1000
 *     ... many writes ...
 *     GET ?limit=500&continue=    410 Expired, continue = {rv: -1, start: ...}: the rest as of now
 *
 * Small lists are one buffer. From STREAM_FROM_BYTES on, the answer is streamed item by item from the stored
 * objects, so that a list of 100 MB costs one array of references. Objects are immutable: writes that happen
 * meanwhile do not change the list. What these replace stays alive for a client that has not read it yet. Once the
 * history has passed the list's version, nothing but the list keeps it, and it is counted as unread memory of
 * that client (verb_list_on_event), which the HTTP server limits.
 *
 * YAML, pretty JSON, tables and metadata are built as trees, which costs memory for the whole list. */
#include "../../base/base64.h"
#include "convert.h"
#include "part.h"
#include "read.h"
#include "server.h"
#include "verbs.h"

enum { STREAM_FROM_BYTES = 512 << 10 };

struct page {
    struct object **objects; /* owned references */
    size_t n;
    int64_t rev;
    str next;          /* start key of the next page, below the prefix; "": the last page */
    int64_t remaining; /* objects after this page; -1: unknown */
};

static void page_done(struct page *p)
{
    for (size_t i = 0; i < p->n; i++)
        object_unref(p->objects[i]);
    free(p->objects);
    *p = (struct page){ 0 };
}

/* ---- continue tokens, in kube-apiserver's format: base64 of {"v", "rv", "start"}
 *
 * "start" is a key below the list's prefix. A negative version means the current one. */

static str make_token(struct arena *a, int64_t rev, str start)
{
    auto_buf struct buf text = { 0 }, out = { 0 };
    buf_printf(&text, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%lld,\"start\":", (long long)rev);
    json_write_text(&text, start);
    buf_putc(&text, '}');
    base64url_encode(&out, buf_str(&text));
    return arena_str(a, buf_str(&out));
}

/* A start key must not leave the prefix of the list. */
static bool is_clean_path(str path)
{
    for (str part; str_cut(&path, '/', &part);)
        if (!part.n || str_eq(part, S(".")) || str_eq(part, S("..")))
            return false;
    return true;
}

/* Parses a continue token. Returns what is wrong with it, or NULL. */
static const char *read_token(struct arena *a, str token, int64_t *ret_rev, str *ret_start)
{
    auto_buf struct buf text = { 0 };
    struct json *tree;
    err_t e;
    if (base64url_decode(&text, token) < 0)
        return "illegal base64 data";
    if (json_parse(a, arena_str(a, buf_str(&text)), &tree, &e) < 0 || !json_is(tree, JSON_OBJ))
        return "it holds no JSON object";
    if (!str_eq(json_text(json_get(tree, "v")), S("meta.k8s.io/v1")))
        return "server does not recognize this encoded version";
    *ret_rev = json_int(json_get(tree, "rv"), 0);
    *ret_start = json_text(json_get(tree, "start"));
    if (!*ret_rev)
        return "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
    if (!ret_start->n)
        return "encoded start key empty (version meta.k8s.io/v1)";
    if (ret_start->p[0] == '/')
        *ret_start = str_from(*ret_start, 1);
    return ret_start->n && !is_clean_path(*ret_start) ? "the start key leaves the list" : NULL;
}

/* ---- selecting */

/* 410; for a continued list with a token for the rest as of now. */
static void answer_expired(struct call *c, const struct list_options *o, str start)
{
    if (!o->continue_token.n) {
        call_expired(c, "The resourceVersion for the provided list is too old.");
        return;
    }
    struct status s = { .code = 410, .reason = "Expired" };
    s.message =
        S("The provided continue parameter is too old to display a consistent list result. You "
          "can start a new list without the continue parameter, or use the continue token in "
          "this response to retrieve the remainder of the results. Continuing with the provided "
          "token results in an inconsistent list - objects that were created, modified, or deleted "
          "between the time the first chunk was returned and now may show up in the list.");
    struct json *tree = status_tree(c->arena, &s);
    json_set(c->arena, json_make(c->arena, tree, "metadata", NULL), S("continue"),
             json_new_str(c->arena, make_token(c->arena, -1, start)));
    call_json(c, 410, tree);
}

/* All objects from `from` on, as of the requested version, as references. False: answered. */
static bool collect_candidates(struct call *c, const struct list_options *o, str prefix, str from,
                               struct page *ret)
{
    struct store *store = c->server->store;
    bool exact = ret->rev > 0 && ret->rev != store_rev(store);
    if (exact) {
        if (history_state(store_history(store), store_tree(store), ret->rev, prefix, from,
                          &ret->objects, &ret->n))
            return true;
        answer_expired(c, o, str_from(from, prefix.n));
        return false;
    }
    ret->rev = store_rev(store);
    VEC(struct object *) found = { 0 };
    struct tree_cursor cursor = tree_seek(store_tree(store), from);
    for (struct object *each; (each = tree_next_in(&cursor, prefix));)
        vec_push(&found, object_ref(each));
    ret->objects = found.at;
    ret->n = found.n;
    return true;
}

/* Keeps the selected objects up to the limit and notes where the next page starts: just after the last key.
 * The number of remaining objects is only known without selectors. */
static void cut_page(struct call *c, const struct list_options *o, str prefix, struct page *p)
{
    size_t kept = 0;
    bool selective = o->labels.n || o->fields.n;
    p->remaining = -1;
    for (size_t i = 0; i < p->n; i++) {
        struct object *each = p->objects[i];
        bool full = o->limit && kept == (size_t)o->limit;
        if (!full && read_is_selected(c->kind, o, each)) {
            p->objects[kept++] = each;
            continue;
        }
        if (full && !p->next.n && read_is_selected(c->kind, o, each)) {
            str last = str_from(object_key(p->objects[kept - 1]), prefix.n);
            p->next =
                arena_join(c->arena, (str[]){ last, { "", 1 } }, 2); /* the first key after it */
            p->remaining = selective ? -1 : (int64_t)(p->n - i);
        }
        object_unref(each);
    }
    p->n = kept;
}

/* Decides version and start, then collects and cuts. False: answered. */
static bool select_page(struct call *c, const struct list_options *o, struct page *ret)
{
    str prefix = catalog_prefix(c->arena, c->kind, c->ns), from = prefix;
    struct page p = { .rev = o->match == MATCH_EXACT ? o->rev : 0 };
    if (o->continue_token.n) {
        if (o->rev) {
            call_bad_request(c, "specifying resource version is not allowed when using continue");
            return false;
        }
        str start;
        const char *fault = read_token(c->arena, o->continue_token, &p.rev, &start);
        if (fault) {
            call_bad_request(c, "invalid continue token: continue key is not valid: %s", fault);
            return false;
        }
        from = arena_join(c->arena, (str[]){ prefix, start }, 2);
    }
    if (verb_refuse_future(c, MAX(o->rev, p.rev)) || !collect_candidates(c, o, prefix, from, &p))
        return false;
    cut_page(c, o, prefix, &p);
    *ret = p;
    return true;
}

/* ---- writing */

static struct json *page_metadata(struct call *c, const struct page *p)
{
    struct arena *a = c->arena;
    struct json *m = json_new_obj(a);
    json_set_str(a, m, "resourceVersion", arena_printf(a, "%lld", (long long)p->rev));
    if (p->next.n)
        json_set_str(a, m, "continue", make_token(a, p->rev, p->next));
    else if (c->kind->custom && c->form == FORM_OBJECT)
        json_set_str(a, m, "continue", S(""));
    if (p->next.n && p->remaining >= 0)
        json_set_int(a, m, "remainingItemCount", p->remaining);
    return m;
}

static void put_head(struct call *c, const struct page *p, struct buf *out)
{
    buf_put(out, S("{\"kind\":"));
    json_write_text(out, c->kind->list_kind);
    buf_put(out, S(",\"apiVersion\":"));
    json_write_text(out, kind_api_version(c->arena, c->kind));
    buf_put(out, S(",\"metadata\":"));
    json_write(out, page_metadata(c, p));
    buf_put(out, S(",\"items\":["));
}

struct list_stream {
    struct stream_source source;
    struct server *server;
    struct exchange *exchange; /* borrowed; NULL until attach_items() */
    struct list_item item;     /* of server->streamed_lists */
    char *prefix;              /* owned: of the keys in the list */
    size_t left;               /* bytes of the items that are not sent yet, about */
    size_t replaced;           /* bytes of items that were replaced since the list was taken */
    struct page page;
    struct catalog_set *set;
    const struct kind *kind;
    struct buf head;
    size_t at;
    struct part part; /* the item before `at`, if it is large and half sent */
};

/* Appends the next item. A large one may be left half sent, in l->part. */
static void put_item(struct list_stream *l, struct buf *out, size_t room)
{
    struct object *o = l->page.objects[l->at];
    l->left -= object_bytes(o);
    if (l->at++)
        buf_putc(out, ',');
    struct object *verbatim = read_find_verbatim(l->kind, l->set, o);
    if (!verbatim)
        read_put(out, l->kind, l->set, o, true);
    else if (l->kind->custom)
        part_begin_as(&l->part, out, room, verbatim, o->rev);
    else
        part_begin_item(&l->part, out, room, verbatim);
}

/* The stream's source: appends items until `room` bytes are written. */
static enum stream_more pull_items(void *context, struct buf *out, size_t room)
{
    struct list_stream *l = context;
    size_t before = out->n;
    buf_put(out, buf_str(&l->head));
    buf_done(&l->head);
    if (l->part.object)
        part_continue(&l->part, out, room);
    while (l->at < l->page.n && !l->part.object && out->n - before < room)
        put_item(l, out, room - (out->n - before));
    if (l->at < l->page.n || l->part.object)
        return STREAM_MORE;
    buf_put(out, S("]}"));
    return STREAM_END;
}

static void close_items(void *context, bool complete)
{
    (void)complete;
    struct list_stream *l = context;
    list_remove(&l->item);
    part_done(&l->part);
    page_done(&l->page);
    free(l->prefix);
    catalog_set_unref(l->set);
    buf_done(&l->head);
    free(l);
}

static void attach_items(const struct stream_source *source, struct exchange *x)
{
    ((struct list_stream *)source->context)->exchange = x;
}

void verb_list_on_event(struct server *s, const struct event *e)
{
    int64_t compacted = store_history(s->store)->compacted;
    list_each(struct list_stream, l, &s->streamed_lists, item) {
        if (e->was && e->was->rev <= l->page.rev &&
            str_starts(object_key(e->now), str_c(l->prefix)))
            l->replaced += object_bytes(e->was);
        if (l->page.rev < compacted && l->exchange)
            exchange_count_source(l->exchange, MIN(l->replaced, l->left));
    }
}

/* The common form: stored bytes, without parsing. The stream owns the page. */
static void answer_text(struct call *c, struct page *p)
{
    size_t bytes = 0;
    for (size_t i = 0; i < p->n; i++)
        bytes += object_bytes(p->objects[i]);
    struct list_stream *l = mem_zero(1, sizeof(*l));
    l->kind = c->kind;
    l->set = catalog_set_ref(c->set);
    l->server = c->server;
    l->left = bytes;
    l->page = *p;
    *p = (struct page){ 0 };
    put_head(c, &l->page, &l->head);
    l->source = (struct stream_source){
        .pull = pull_items, .closed = close_items, .context = l, .compress = true, .length = -1
    };
    c->answer.status = 200;
    c->answer.content_type = "application/json";
    if (bytes >= STREAM_FROM_BYTES) {
        str prefix = catalog_prefix(c->arena, c->kind, c->ns);
        l->prefix = mem_dup(prefix.p, prefix.n);
        list_append(&c->server->streamed_lists, &l->item);
        c->answer.stream = &l->source;
        c->answer.attach = attach_items;
        return;
    }
    buf_reserve(&c->answer.body, bytes + 256 + l->head.n);
    while (pull_items(l, &c->answer.body, SIZE_MAX) != STREAM_END)
        ;
    close_items(l, true);
}

/* An empty list is null, as in kube-apiserver. */
static struct json *make_partial_list(struct call *c, const struct json *const *items, size_t n,
                                      struct json *metadata)
{
    struct arena *a = c->arena;
    str version = answer_meta_version(c);
    struct json *list = json_new_obj(a), *all = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, all, table_partial(a, items[i], version));
    json_set_str(a, list, "kind", S("PartialObjectMetadataList"));
    json_set_str(a, list, "apiVersion", version);
    json_set(a, list, S("metadata"), metadata);
    json_set(a, list, S("items"), n ? all : json_new_null(a));
    return list;
}

/* All other forms, through parsed trees. */
static void answer_tree(struct call *c, struct page *p)
{
    struct arena *a = c->arena;
    const struct json **items = arena_array(a, p->n, sizeof(*items));
    for (size_t i = 0; i < p->n; i++)
        items[i] = read_tree(a, c->kind, p->objects[i]);
    struct json *metadata = page_metadata(c, p);
    if (c->form == FORM_TABLE) {
        call_json(c, 200, table_make(a, c->kind, items, p->n, metadata, answer_table_options(c)));
        return;
    }
    if (c->form == FORM_PARTIAL_LIST) {
        call_json(c, 200, make_partial_list(c, items, p->n, metadata));
        return;
    }
    struct json *list = json_new_obj(a), *all = json_new_arr(a);
    json_set_str(a, list, "kind", c->kind->list_kind);
    json_set_str(a, list, "apiVersion", kind_api_version(a, c->kind));
    json_set(a, list, S("metadata"), metadata);
    for (size_t i = 0; i < p->n; i++) {
        struct json *item = (struct json *)(uintptr_t)items[i];
        if (!c->kind->custom) {
            json_del(item, S("kind"));
            json_del(item, S("apiVersion"));
        }
        json_push(a, all, item);
    }
    json_set(a, list, S("items"), all);
    call_json(c, 200, list);
}

void verb_list(struct call *c)
{
    struct list_options o;
    struct page p;
    if (!call_list_options(c, &o) || !select_page(c, &o, &p))
        return;
    if (!convert_objects(c, c->kind, p.objects, p.n, false))
        ; /* answered, or waiting */
    else if (c->form == FORM_OBJECT && c->text == TEXT_JSON && !c->pretty)
        answer_text(c, &p);
    else
        answer_tree(c, &p);
    page_done(&p);
}
