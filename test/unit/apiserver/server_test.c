/* The API server without sockets, for what the recordings in test/conformance do not cover: watches that fall
 * behind, pages of an old version, garbage collection, terminating namespaces, tokens and permissions. */
#include "tap.h"

#include "apiserver/controllers/controllers.h"
#include "apiserver/http/auth.h"
#include "apiserver/http/token.h"
#include "apiserver/http/watch.h"
#include "support/inproc.h"

#include <unistd.h>

#define MAPS "/api/v1/namespaces/default/configmaps"

static struct arena arena;

static struct server *open_server(size_t history_events)
{
    struct server *s = NULL;
    err_t e = { 0 };
    struct server_options o = { .history_events = history_events, .controllers = controllers_all };
    OK_CALL(server_new(NULL, &o, &s, &e), &e);
    return s;
}

static struct inproc_answer send_request(struct server *s, const char *method, const char *path,
                                         const char *query, const char *body)
{
    return inproc_send(s, &arena, &(struct inproc_request){ method, path, query, body });
}

static struct inproc_answer send_patch(struct server *s, const char *path, const char *body)
{
    return inproc_send(s, &arena,
                       &(struct inproc_request){ .method = "PATCH",
                                                 .path = path,
                                                 .body = body,
                                                 .content_type = "application/merge-patch+json" });
}

static str text_at(const struct inproc_answer *a, const char *x, const char *y)
{
    return json_text(json_at(a->body, x, y, NULL));
}

static void create_map(struct server *s, const char *name, const char *more)
{
    char body[400];
    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"%s}}", name, more);
    EQ_INT(send_request(s, "POST", MAPS, NULL, body).status, 201);
}

static void close_server(struct server *s)
{
    server_free(s);
    arena_reset(&arena, (struct arena_mark){ 0 });
}

static void reviews_report_user_and_rules(void)
{
    struct server *s = open_server(0);
    struct inproc_answer a =
        send_request(s, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", NULL, "{}");
    EQ_INT(a.status, 201);
    const struct json *groups = json_at(a.body, "status", "userInfo", "groups", NULL);
    EQ_STR(json_text(json_item(groups, json_len(groups) - 1)), S("system:authenticated"));
    static const char rules[] = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    a = send_request(s, "POST", rules, NULL, "{\"spec\":{\"namespace\":\"default\"}}");
    EQ_INT(a.status, 201);
    const struct json *first = json_item(json_at(a.body, "status", "resourceRules", NULL), 0);
    EQ_STR(json_text(json_item(json_get(first, "verbs"), 0)), S("*"));
    EQ_INT(send_request(s, "POST", rules, NULL, "{}").status, 400);
    close_server(s);
}

static void default_namespaces_have_service_accounts(void)
{
    struct server *s = open_server(0);
    EQ_INT(json_len(
               json_get(send_request(s, "GET", "/api/v1/namespaces", NULL, NULL).body, "items")),
           4);
    EQ_INT(send_request(s, "GET", "/api/v1/namespaces/kube-system/serviceaccounts/default", NULL,
                        NULL)
               .status,
           200);
    struct inproc_answer a = send_request(s, "DELETE", "/api/v1/namespaces/default", NULL, NULL);
    EQ_INT(a.status, 403);
    close_server(s);
}

static void slow_watch_ends_with_410(void)
{
    struct server *s = open_server(16);
    create_map(s, "a", "");
    struct inproc_answer list = send_request(s, "GET", MAPS, NULL, NULL);
    char query[80];
    snprintf(query, sizeof(query), "watch=true&resourceVersion=%s",
             text_at(&list, "metadata", "resourceVersion").p);
    struct inproc_answer w = send_request(s, "GET", MAPS, query, NULL);
    bool end = false;
    OK(w.stream.pull != NULL);
    EQ_STR(inproc_pull(&arena, &w.stream, 1000, &end), S(""));
    for (int i = 0; i < 20; i++) {
        char body[60];
        snprintf(body, sizeof(body), "{\"data\":{\"n\":\"%d\"}}", i);
        EQ_INT(send_patch(s, MAPS "/a", body).status, 200);
    }
    str sent = inproc_pull(&arena, &w.stream, 1000, &end);
    OK(end);
    OK(str_find(sent, S("\"type\":\"ERROR\"")) != SIZE_MAX);
    OK(str_find(sent, S("\"code\":410")) != SIZE_MAX);
    EQ_INT(s->n_watches, 0);
    /* a new watch from the same version ends at once */
    w = send_request(s, "GET", MAPS, query, NULL);
    OK(str_find(inproc_pull(&arena, &w.stream, 1000, &end), S("Expired")) != SIZE_MAX);
    OK(end);
    close_server(s);
}

static void idle_watch_does_not_fall_behind(void)
{
    struct server *s = open_server(16);
    struct inproc_answer w =
        send_request(s, "GET", "/api/v1/namespaces/default/secrets", "watch=true", NULL);
    bool end = false;
    inproc_pull(&arena, &w.stream, 1000, &end);
    create_map(s, "a", "");
    for (int i = 0; i < 50; i++) {
        char body[60];
        snprintf(body, sizeof(body), "{\"data\":{\"n\":\"%d\"}}", i);
        send_patch(s, MAPS "/a", body);
    }
    EQ_INT(send_request(s, "POST", "/api/v1/namespaces/default/secrets", NULL,
                        "{\"metadata\":{\"name\":\"s\"}}")
               .status,
           201);
    str sent = inproc_pull(&arena, &w.stream, 1000, &end);
    OK(!end);
    OK(str_starts(sent, S("{\"type\":\"ADDED\"")));
    w.stream.closed(w.stream.context, true);
    close_server(s);
}

static void watch_stops_when_there_is_no_room(void)
{
    struct server *s = open_server(0);
    for (int i = 0; i < 10; i++) {
        char name[20];
        snprintf(name, sizeof(name), "m%d", i);
        create_map(s, name, "");
    }
    struct inproc_answer w = send_request(s, "GET", MAPS, "watch=true", NULL);
    auto_buf struct buf out = { 0 };
    int pulls = 0;
    while (w.stream.pull(w.stream.context, &out, 100) == STREAM_MORE)
        pulls++;
    OK(pulls >= 9);
    w.stream.closed(w.stream.context, false);
    close_server(s);
}

static void pages_show_one_version(void)
{
    struct server *s = open_server(0);
    create_map(s, "a", "");
    create_map(s, "b", ",\"labels\":{\"v\":\"old\"}");
    create_map(s, "c", "");
    struct inproc_answer first = send_request(s, "GET", MAPS, "limit=1", NULL);
    char query[200];
    snprintf(query, sizeof(query), "continue=%s", text_at(&first, "metadata", "continue").p);
    send_request(s, "DELETE", MAPS "/c", NULL, NULL);
    send_patch(s, MAPS "/b", "{\"metadata\":{\"labels\":{\"v\":\"new\"}}}");
    create_map(s, "aa", "");
    struct inproc_answer rest = send_request(s, "GET", MAPS, query, NULL);
    struct json *items = json_get(rest.body, "items");
    EQ_INT(json_len(items), 2);
    EQ_STR(json_text(json_at(json_item(items, 0), "metadata", "labels", "v", NULL)), S("old"));
    EQ_STR(json_text(json_at(json_item(items, 1), "metadata", "name", NULL)), S("c"));
    EQ_STR(text_at(&rest, "metadata", "resourceVersion"),
           text_at(&first, "metadata", "resourceVersion"));
    close_server(s);
}

static void expired_page_returns_a_new_token(void)
{
    struct server *s = open_server(8);
    create_map(s, "a", "");
    create_map(s, "b", "");
    struct inproc_answer first = send_request(s, "GET", MAPS, "limit=1", NULL);
    char query[200];
    snprintf(query, sizeof(query), "limit=1&continue=%s",
             text_at(&first, "metadata", "continue").p);
    for (int i = 0; i < 12; i++) {
        char body[60];
        snprintf(body, sizeof(body), "{\"data\":{\"n\":\"%d\"}}", i);
        send_patch(s, MAPS "/a", body);
    }
    struct inproc_answer gone = send_request(s, "GET", MAPS, query, NULL);
    EQ_INT(gone.status, 410);
    snprintf(query, sizeof(query), "limit=1&continue=%s", text_at(&gone, "metadata", "continue").p);
    struct inproc_answer rest = send_request(s, "GET", MAPS, query, NULL);
    EQ_INT(rest.status, 200);
    EQ_STR(json_text(json_at(json_item(json_get(rest.body, "items"), 0), "metadata", "name", NULL)),
           S("b"));
    close_server(s);
}

/* Two ConfigMaps: "child" belongs to "owner". */
static void create_owner_and_child(struct server *s)
{
    create_map(s, "owner", "");
    struct inproc_answer owner = send_request(s, "GET", MAPS "/owner", NULL, NULL);
    char more[300];
    snprintf(
        more, sizeof(more),
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":"
        "\"%s\"}]",
        text_at(&owner, "metadata", "uid").p);
    create_map(s, "child", more);
}

static void dependents_are_deleted_after_their_owner(void)
{
    struct server *s = open_server(0);
    create_owner_and_child(s);
    EQ_INT(send_request(s, "GET", MAPS "/child", NULL, NULL).status, 200);
    EQ_INT(send_request(s, "DELETE", MAPS "/owner", NULL, NULL).status, 200);
    EQ_INT(send_request(s, "GET", MAPS "/child", NULL, NULL).status, 404);
    /* an owner that does not exist */
    create_map(
        s, "stray",
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":"
        "\"11111111-2222-3333-4444-555555555555\"}]");
    EQ_INT(send_request(s, "GET", MAPS "/stray", NULL, NULL).status, 404);
    close_server(s);
}

static void orphans_lose_their_owner_reference(void)
{
    struct server *s = open_server(0);
    create_owner_and_child(s);
    EQ_INT(send_request(s, "DELETE", MAPS "/owner", "propagationPolicy=Orphan", NULL).status, 200);
    EQ_INT(send_request(s, "GET", MAPS "/owner", NULL, NULL).status, 404);
    struct inproc_answer child = send_request(s, "GET", MAPS "/child", NULL, NULL);
    EQ_INT(child.status, 200);
    OK(!json_at(child.body, "metadata", "ownerReferences", NULL));
    close_server(s);
}

static void terminating_namespaces_are_emptied(void)
{
    struct server *s = open_server(0);
    EQ_INT(send_request(s, "POST", "/api/v1/namespaces", NULL, "{\"metadata\":{\"name\":\"x\"}}")
               .status,
           201);
    EQ_INT(send_request(s, "POST", "/api/v1/namespaces/x/configmaps", NULL,
                        "{\"metadata\":{\"name\":\"held\",\"finalizers\":[\"example.com/a\"]}}")
               .status,
           201);
    EQ_INT(send_request(s, "DELETE", "/api/v1/namespaces/x", NULL, NULL).status, 200);
    struct inproc_answer a = send_request(s, "POST", "/api/v1/namespaces/x/configmaps", NULL,
                                          "{\"metadata\":{\"name\":\"late\"}}");
    EQ_INT(a.status, 403);
    EQ_STR(json_text(
               json_at(json_item(json_at(a.body, "details", "causes", NULL), 0), "reason", NULL)),
           S("NamespaceTerminating"));
    a = send_request(s, "GET", "/api/v1/namespaces/x", NULL, NULL);
    EQ_STR(text_at(&a, "status", "phase"), S("Terminating"));
    OK(json_len(json_at(a.body, "status", "conditions", NULL)) == 5);
    EQ_INT(send_patch(s, "/api/v1/namespaces/x/configmaps/held",
                      "{\"metadata\":{\"finalizers\":null}}")
               .status,
           200);
    EQ_INT(send_request(s, "GET", "/api/v1/namespaces/x", NULL, NULL).status, 404);
    EQ_INT(
        send_request(s, "GET", "/api/v1/namespaces/x/serviceaccounts/default", NULL, NULL).status,
        404);
    close_server(s);
}

static void conflicts_include_staged_writes(void)
{
    struct server *s = open_server(0);
    create_map(s, "a", "");
    struct inproc_answer old = send_request(s, "GET", MAPS "/a", NULL, NULL);
    char body[200];
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"1\"}}",
             text_at(&old, "metadata", "resourceVersion").p);
    EQ_INT(send_request(s, "PUT", MAPS "/a", NULL, body).status, 200);
    EQ_INT(send_request(s, "PUT", MAPS "/a", NULL, body).status, 409);
    close_server(s);
}

static void users_are_limited_to_their_roles(void)
{
    static const struct {
        const char *bearer, *method, *path;
        int want;
    } t[] = {
        { NULL, "GET", "/healthz", 200 },
        { NULL, "GET", "/version", 200 },
        { NULL, "GET", "/apis", 403 },
        { NULL, "GET", MAPS, 403 },
        { NULL, "GET", "/nosuch", 403 },
        { "Bearer wrong-token", "GET", "/healthz", 401 },
        { "Bearer reader-token", "GET", MAPS, 200 },
        { "Bearer reader-token", "GET", "/apis", 200 },
        { "Bearer reader-token", "DELETE", MAPS, 403 },
        { "Bearer reader-token", "POST", MAPS, 403 },
        { "Bearer reader-token", "GET", "/api/v1/secrets", 403 },
        { "Bearer admin-token", "GET", "/api/v1/secrets", 200 },
        { "bearer admin-token", "GET", "/api/v1/secrets", 200 },
        { "Bearer outsider-token", "GET", MAPS, 403 },
    };
    struct server *s = open_server(0);
    s->auth = auth_new();
    const str admins[] = { S(AUTH_ADMINS) }, readers[] = { S(AUTH_READERS) };
    auth_add_token(s->auth, S("admin-token"), S("root"), S("uid-root"), admins, 1);
    auth_add_token(s->auth, S("reader-token"), S("looker"), S(""), readers, 1);
    auth_add_token(s->auth, S("outsider-token"), S("nobody"), S(""), NULL, 0);
    for (size_t i = 0; i < countof(t); i++) {
        struct inproc_answer a =
            inproc_send(s, &arena,
                        &(struct inproc_request){
                            .method = t[i].method, .path = t[i].path, .bearer = t[i].bearer });
        if (a.status != t[i].want)
            tap_note(__FILE__, __LINE__, "%s %s by %s: %d, want %d", t[i].method, t[i].path,
                     t[i].bearer ? t[i].bearer : "no token", a.status, t[i].want);
    }
    auth_free(s->auth);
    close_server(s);
}

static int status_of(struct server *s, str token, const char *method, const char *path)
{
    str bearer = arena_printf(&arena, "Bearer " STR_FMT, STR_ARG(token));
    struct inproc_request q = { .method = method, .path = path, .bearer = bearer.p };
    return inproc_send(s, &arena, &q).status;
}

static void account_tokens_are_checked(void)
{
    static const char account[] = "/api/v1/namespaces/default/serviceaccounts/default";
    struct server *s = open_server(0);
    const str admins[] = { S(AUTH_ADMINS) };
    s->auth = auth_new();
    auth_set_key(s->auth, S("some key"));
    auth_add_token(s->auth, S("admin-token"), S("root"), S("uid-root"), admins, 1);
    struct inproc_request q = { .method = "POST",
                                .path = "/api/v1/namespaces/default/serviceaccounts/default/token",
                                .body = "{\"spec\":{\"expirationSeconds\":600}}",
                                .bearer = "Bearer admin-token" };
    struct inproc_answer a = inproc_send(s, &arena, &q);
    EQ_INT(a.status, 201);
    str token = text_at(&a, "status", "token");
    EQ_INT(status_of(s, token, "GET", "/apis"), 200); /* authenticated, without any other role */
    EQ_INT(status_of(s, token, "GET", MAPS), 403);
    EQ_INT(status_of(s, str_upto(token, token.n - 1), "GET", "/apis"), 401);
    auth_set_key(s->auth, S("another key"));
    EQ_INT(status_of(s, token, "GET", "/apis"), 401);
    auth_set_key(s->auth, S("some key"));
    struct token_claims claims = { .ns = S("default"),
                                   .account = S("default"),
                                   .audiences = json_at(a.body, "spec", "audiences", NULL),
                                   .until_s = clock_wall_ns() / NS_PER_S + 60 };
    EQ_INT(status_of(s, token_make(s, &arena, &claims), "GET", "/apis"), 200);
    claims.until_s -= 120;
    EQ_INT(status_of(s, token_make(s, &arena, &claims), "GET", "/apis"), 401);
    EQ_INT(status_of(s, S("admin-token"), "DELETE", account), 200);
    EQ_INT(status_of(s, token, "GET", "/apis"), 401);
    auth_free(s->auth);
    close_server(s);
}

static void claims_in_use_are_kept(void)
{
    static const char claims[] = "/api/v1/namespaces/default/persistentvolumeclaims";
    static const char claim[] = "/api/v1/namespaces/default/persistentvolumeclaims/c";
    static const char pods[] = "/api/v1/namespaces/default/pods";
    struct server *s = open_server(0);
    EQ_INT(
        send_request(s, "POST", claims, NULL,
                     "{\"metadata\":{\"name\":\"c\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                     "\"resources\":{\"requests\":{\"storage\":\"1\"}}}}")
            .status,
        201);
    EQ_INT(
        send_request(
            s, "POST", pods, NULL,
            "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
            "\"c\",\"image\":\"i\"}],\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
            "\"claimName\":\"c\"}}]}}")
            .status,
        201);
    EQ_INT(send_request(s, "DELETE", claim, NULL, NULL).status, 200);
    EQ_INT(send_request(s, "GET", claim, NULL, NULL).status, 200);
    EQ_INT(send_request(s, "DELETE", "/api/v1/namespaces/default/pods/p", "gracePeriodSeconds=0",
                        NULL)
               .status,
           200);
    EQ_INT(send_request(s, "GET", claim, NULL, NULL).status, 404);
    close_server(s);
}

static void token_files_are_parsed(void)
{
    static const struct {
        const char *text;
        bool want;
    } t[] = {
        { "# users\nlongtoken,ann,1,\"system:masters,dev\"\n\n", true },
        { "longtoken,ann\n", true },
        { "short,ann\n", false },
        { "longtoken\n", false },
        { "longtoken,\n", false },
    };
    for (size_t i = 0; i < countof(t); i++) {
        char path[] = "/tmp/flyball-tokens-XXXXXX";
        auto_close int fd = mkstemp(path);
        struct auth *a = auth_new();
        err_t e = { 0 };
        OK(write(fd, t[i].text, strlen(t[i].text)) > 0);
        if ((auth_add_file(a, path, &e) == 0) != t[i].want)
            tap_note(__FILE__, __LINE__, "%s: %s", t[i].text, e.text);
        unlink(path);
        auth_free(a);
    }
}

static void large_and_deep_bodies_are_refused(void)
{
    struct server *s = open_server(0);
    auto_buf struct buf body = { 0 };
    buf_put(&body, S("{\"metadata\":{\"name\":\"big\"},\"binaryData\":{\"a\":\""));
    while (body.n < (3 << 19))
        buf_put(&body, S("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
    buf_put(&body, S("\"}}"));
    int status = send_request(s, "POST", MAPS, NULL, body.p).status;
    OK(status == 413 || status == 422);
    buf_clear(&body);
    for (int i = 0; i < 100000; i++)
        buf_putc(&body, '[');
    EQ_INT(send_request(s, "POST", MAPS, NULL, body.p).status, 400);
    close_server(s);
}

static void old_events_are_deleted(void)
{
    struct server *s = open_server(0);
    EQ_INT(send_request(
               s, "POST", "/api/v1/namespaces/default/events", NULL,
               "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"namespace\":\"default\"}}")
               .status,
           201);
    server_expire_events(s);
    server_run_until_idle(s);
    EQ_INT(send_request(s, "GET", "/api/v1/namespaces/default/events/e", NULL, NULL).status, 200);
    store_get(s->store, S("/events/default/e"))->written_s -= 7;
    struct loop *fast =
        NULL; /* `flyball up --speed 600 --clock 2090-...`: 4200 s of its clock ago, in another century */
    OK(loop_new(&(struct loop_options){ .time = LOOP_SCALED,
                                        .speed = 600,
                                        .start_wall_ns = INT64_C(3786912000) * NS_PER_S },
                &fast, NULL) == 0);
    s->loop = fast;
    server_expire_events(s);
    s->loop = NULL;
    loop_free(fast);
    server_run_until_idle(s);
    EQ_INT(send_request(s, "GET", "/api/v1/namespaces/default/events/e", NULL, NULL).status, 200);
    store_get(s->store, S("/events/default/e"))->written_s -= 3700;
    server_expire_events(s);
    server_run_until_idle(s);
    EQ_INT(send_request(s, "GET", "/api/v1/namespaces/default/events/e", NULL, NULL).status, 404);
    close_server(s);
}

/* A clock at 600 times the speed makes more events in an hour of real time than memory should hold. */
static void only_the_newest_events_are_kept(void)
{
    enum { KEPT = 10000, SURPLUS = 5 };
    struct server *s = open_server(0);
    for (int i = 0; i < KEPT + SURPLUS; i++) {
        char body[160];
        snprintf(body, sizeof(body),
                 "{\"metadata\":{\"name\":\"e%d\"},\"involvedObject\":{\"namespace\":\"default\"}}",
                 KEPT + SURPLUS - i);
        EQ_INT(send_request(s, "POST", "/api/v1/namespaces/default/events", NULL, body).status,
               201);
    }
    server_expire_events(s);
    server_run_until_idle(s);
    for (int i = 0; i < 2 * SURPLUS; i++) {
        char path[80];
        snprintf(path, sizeof(path), "/api/v1/namespaces/default/events/e%d", KEPT + SURPLUS - i);
        EQ_INT(send_request(s, "GET", path, NULL, NULL).status, i < SURPLUS ? 404 : 200);
    }
    close_server(s);
}

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(default_namespaces_have_service_accounts),
                                              TAP(reviews_report_user_and_rules),
                                              TAP(slow_watch_ends_with_410),
                                              TAP(idle_watch_does_not_fall_behind),
                                              TAP(watch_stops_when_there_is_no_room),
                                              TAP(pages_show_one_version),
                                              TAP(expired_page_returns_a_new_token),
                                              TAP(dependents_are_deleted_after_their_owner),
                                              TAP(orphans_lose_their_owner_reference),
                                              TAP(terminating_namespaces_are_emptied),
                                              TAP(conflicts_include_staged_writes),
                                              TAP(users_are_limited_to_their_roles),
                                              TAP(account_tokens_are_checked),
                                              TAP(claims_in_use_are_kept),
                                              TAP(token_files_are_parsed),
                                              TAP(large_and_deep_bodies_are_refused),
                                              TAP(old_events_are_deleted),
                                              TAP(only_the_newest_events_are_kept),
                                              { 0 } });
    arena_done(&arena);
    return result;
}
