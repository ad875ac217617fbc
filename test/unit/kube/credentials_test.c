/* Credentials that change: token files, plugins, 401s. */
#include "fake.h"
#include "kube/credentials.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/flyball-cred-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[100];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    fputs(text, f);
    fclose(f);
    chmod(in_dir(name), 0755);
}

static char seen[100]; /* the last Authorization */
static bool refuse;    /* answer 401 */

static void serve(struct fake *f, struct exchange *x)
{
    (void)f;
    snprintf(seen, sizeof(seen), STR_FMT, STR_ARG(exchange_header(x, S("authorization"))));
    fake_answer(x, refuse ? 401 : 200, "{}");
}

struct answer {
    bool done;
    int code;
    char failure[300];
};

static void on_reply(void *context, const struct kube_reply *reply)
{
    struct answer *a = context;
    a->done = true;
    a->code = reply->code;
    snprintf(a->failure, sizeof(a->failure), "%s", reply->failure ? reply->failure : "");
}

static struct answer ask(struct fake *f)
{
    struct answer a = { 0 };
    seen[0] = '\0';
    kube_send(f->kube,
              &(struct kube_request){
                  .verb = KUBE_GET, .path = S("/version"), .done = on_reply, .context = &a });
    fake_until(f, &a.done);
    return a;
}

/* A fake whose client has other credentials. */
static void start_with(struct fake *f, struct kube_config config)
{
    fake_start(f, serve);
    kube_free(f->kube);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(f->server));
    config.where = S("a test");
    config.server = str_c(url);
    err_t e;
    OK_CALL(kube_new(&(struct kube_options){ .loop = f->loop, .config = &config }, &f->kube, &e),
            &e);
    refuse = false;
}

static void fixed_ones_are_sent(void)
{
    struct fake f;
    start_with(&f, (struct kube_config){ .token = S("abc") });
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer abc"));
    fake_stop(&f);
    start_with(&f, (struct kube_config){ .username = S("ann"), .password = S("pass") });
    ask(&f);
    EQ_STR(str_c(seen), S("Basic YW5uOnBhc3M="));
    fake_stop(&f);
}

static void token_files_are_read_again(void)
{
    struct fake f;
    put("token", "one\n");
    start_with(&f, (struct kube_config){ .token_file = str_c(in_dir("token")) });
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer one"));
    put("token", "two\n");
    fake_for(&f, 20 * NS_PER_S);
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer one"));
    fake_for(&f, 31 * NS_PER_S);
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer two"));
    put("token", "three\n");
    refuse = true;
    EQ_INT(ask(&f).code, 401); /* is not repeated, but the next one has a new token */
    EQ_STR(str_c(seen), S("Bearer two"));
    refuse = false;
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer three"));
    unlink(in_dir("token"));
    fake_for(&f, 60 * NS_PER_S);
    ask(&f);
    EQ_STR(str_c(seen), S("Bearer three")); /* a failing read keeps the old one */
    fake_stop(&f);
}

static const str args[] = { { "first", 5 }, { "second one", 10 } };
static const struct exec_env env[] = { { { "EXTRA", 5 }, { "value", 5 } } };

static struct exec_plugin plugin(const char *name)
{
    return (struct exec_plugin){ .command = str_c(in_dir(name)),
                                 .api_version = S("client.authentication.k8s.io/v1"),
                                 .args = args,
                                 .arg_count = 2,
                                 .env = env,
                                 .env_count = 1,
                                 .cluster_json = S("{\"server\":\"https://x\"}"),
                                 .install_hint = S("install it") };
}

static void plugins_are_asked_once(void)
{
    /* counts its runs, and its token contains its input */
    put("plugin", "#!/bin/sh\ncd $(dirname $0)\necho run >>runs\n"
                  "echo \"$KUBERNETES_EXEC_INFO\" >info\n"
                  "printf '{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s-%s-%s\","
                  "\"expirationTimestamp\":\"2025-10-09T09:53:20Z\"}}' \"$1\" \"$2\" \"$EXTRA\"\n");
    unlink(in_dir("runs"));
    struct exec_plugin x = plugin("plugin");
    struct fake f;
    start_with(&f, (struct kube_config){ .exec = &x });
    struct answer two = { 0 };
    kube_send(f.kube, &(struct kube_request){
                          .verb = KUBE_GET, .path = S("/a"), .done = on_reply, .context = &two });
    EQ_INT(ask(&f).code, 200);
    EQ_STR(str_c(seen), S("Bearer first-second one-value"));
    OK(two.done);
    ask(&f);
    char text[300] = "";
    FILE *info = fopen(in_dir("info"), "r");
    OK(info && fgets(text, sizeof(text), info));
    fclose(info);
    EQ_STR(str_trim(str_c(text)),
           S("{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
             "\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://x\"}}}"));
    struct stat runs;
    OK(stat(in_dir("runs"), &runs) == 0 && runs.st_size == 4);
    refuse = true;
    EQ_INT(ask(&f).code, 401);
    refuse = false;
    ask(&f); /* asks the plugin again */
    OK(stat(in_dir("runs"), &runs) == 0 && runs.st_size == 8);
    fake_for(&f, 3601 * NS_PER_S);
    ask(&f); /* expired */
    OK(stat(in_dir("runs"), &runs) == 0 && runs.st_size == 12);
    fake_stop(&f);
}

static void failing_plugins_say_why(void)
{
    static const struct {
        const char *script, *says;
    } t[] = {
        { "#!/bin/sh\necho 'please log in' >&2\nexit 3\n", "exited with status 3: please log in" },
        { "#!/bin/sh\necho nonsense\n", "invalid JSON" },
        { "#!/bin/sh\necho '{\"kind\":\"Other\"}'\n", "must be ExecCredential" },
        { "#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"status\":{}}'\n",
          "neither a token nor" },
        { "#!/bin/sh\nkill -9 $$\n", "signal 9" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        put("bad", t[i].script);
        struct exec_plugin x = plugin("bad");
        struct fake f;
        start_with(&f, (struct kube_config){ .exec = &x });
        struct answer a = ask(&f);
        EQ_INT(a.code, 0);
        OK(strstr(a.failure, "credential plugin"));
        if (!OK(strstr(a.failure, t[i].says)))
            printf("# failure: %s\n", a.failure);
        EQ_INT(f.requests, 0);
        a = ask(&f); /* is not run again at once, but fails the same way */
        if (!OK(strstr(a.failure, t[i].says)))
            printf("# then: %s\n", a.failure);
        fake_stop(&f);
    }
    struct exec_plugin x = plugin("missing");
    struct fake f;
    start_with(&f, (struct kube_config){ .exec = &x });
    OK(strstr(ask(&f).failure, "missing"));
    fake_stop(&f);
}

static void cancel_another(void *context, const struct kube_reply *reply)
{
    struct kube_call **others = context;
    OK(reply->failure);
    for (int i = 0; i < 2; i++)
        kube_call_cancel(take(others[i]));
}

/* Whose owner, when it hears that there are no credentials, ends others that wait for them. */
static void who_waits_may_be_cancelled_by_who_fails(void)
{
    put("bad", "#!/bin/sh\nexit 3\n");
    struct exec_plugin x = plugin("bad");
    struct fake f;
    struct answer never = { 0 }, last = { 0 };
    struct kube_call *others[2];
    struct kube_request request = { .verb = KUBE_GET, .path = S("/version") };
    start_with(&f, (struct kube_config){ .exec = &x });
    request.done = cancel_another;
    request.context = others;
    kube_send(f.kube, &request);
    request.done = on_reply;
    request.context = &never;
    for (int i = 0; i < 2; i++)
        others[i] = kube_send(f.kube, &request);
    request.context = &last;
    kube_send(f.kube, &request);
    fake_until(&f, &last.done);
    OK(strstr(last.failure, "credential plugin"));
    OK(!never.done && !others[0]);
    fake_stop(&f);
}

static void answers_are_checked(void)
{
    auto_arena struct arena a = { 0 };
    struct exec_answer answer;
    err_t e;
    OK_CALL(credentials_parse_answer(
                &a,
                S("{\"kind\":\"ExecCredential\",\"status\":{\"clientCertificateData\":"
                  "\"-----BEGIN X\",\"clientKeyData\":\"S0VZ\"}}"),
                &answer, &e),
            &e);
    EQ_STR(answer.cert_pem, S("-----BEGIN X"));
    EQ_STR(answer.key_pem, S("KEY"));
    OK(answer.expires_ns == INT64_MAX);
    static const char *const bad[] = {
        "[]", "{\"kind\":\"ExecCredential\",\"status\":{\"clientKeyData\":\"S0VZ\"}}",
        "{\"kind\":\"ExecCredential\",\"status\":{\"clientKeyData\":\"*\"}}",
        "{\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}"
    };
    for (size_t i = 0; i < countof(bad); i++)
        OK(credentials_parse_answer(&a, str_c(bad[i]), &answer, &e) < 0);
}

/* Nothing is contacted: whether a secret may go there is known from the URL. */
static void secrets_are_not_sent_in_the_clear(void)
{
    static const struct exec_plugin plugin = { .command = STR_INIT("x") };
    const struct kube_config table[] = {
        { .token = S("abc") },
        { .token_file = S("/nowhere/token") },
        { .username = S("ann"), .password = S("pass") },
        { .exec = &plugin },
    };
    struct loop *loop;
    err_t e = { 0 };
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    for (size_t i = 0; i < countof(table); i++) {
        struct kube_config config = table[i];
        struct kube *kube = NULL;
        config.where = S("a test");
        config.server = S("http://192.0.2.1:8080");
        struct kube_options o = { .loop = loop, .config = &config };
        EQ_INT(kube_new(&o, &kube, &e), -EPERM);
        OK(strstr(e.text, "--allow-insecure-token") && strstr(e.text, "192.0.2.1"));
        o.insecure_token = true;
        OK_CALL(kube_new(&o, &kube, &e), &e);
        kube_free(kube);
    }
    struct kube *kube = NULL;
    struct kube_config open = { .where = S("a test"), .server = S("http://192.0.2.1:8080") };
    OK_CALL(kube_new(&(struct kube_options){ .loop = loop, .config = &open }, &kube, &e), &e);
    kube_free(kube);
    loop_free(loop);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    int r = tap_run((struct tap_case[]){ TAP(fixed_ones_are_sent),
                                         TAP(token_files_are_read_again),
                                         TAP(plugins_are_asked_once),
                                         TAP(failing_plugins_say_why),
                                         TAP(who_waits_may_be_cancelled_by_who_fails),
                                         TAP(answers_are_checked),
                                         TAP(secrets_are_not_sent_in_the_clear),
                                         { 0 } });
    char command[120];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command) ? 1 : r;
}
