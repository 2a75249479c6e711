/* The client on real CPU plugins of three versions of the interface: devices, compiling, buffers of
 * every type, running on one and on eight replicas, donation, events, errors. Expected numbers are
 * computed here by plain loops, or are small sums; texts of errors are asked for parts that a
 * person needs. Called with the plugin's path inside site-packages. */
#include <math.h>
#include <unistd.h>

#include "backend/pjrt/client.h"
#include "pjrt_testing.h"

static const char *plugin_name = PJRT_CPU_115;
static tp__plugin *plugin;
static tp__client *client;

enum { REPLICAS = 8 };

static int open_client(void **state)
{
  (void)state;
  tp_error err = {0};
  const char *path = plugin_file(plugin_name);
  if (path == NULL) return 0;
  tp__client_option count = {.name = "cpu_device_count", .number = REPLICAS};
  if (tp__plugin_open(path, &plugin, &err) != TP_OK ||
      tp__client_new(plugin, &count, 1, &client, &err) != TP_OK) {
    print_error("%s\n", err.text);
    return 1;
  }
  return 0;
}

static int close_client(void **state)
{
  (void)state;
  tp__client_free(client);
  tp__plugin_close(plugin);
  return 0;
}

#define need_client()                                                                              \
  do {                                                                                             \
    if (client == NULL) {                                                                          \
      print_message("skipped: no PJRT plugin %s (make test-pjrt gets it)\n", plugin_name);         \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

static const tp__shape four = {1, {4}};

static tp__executable *compiled(const char *text, int replicas)
{
  tp_error err = {0};
  tp__executable *x = NULL;
  assert_ok(tp__executable_new(client, text, strlen(text), replicas, NULL, &x, &err));
  return x;
}

static tp__device_buffer *put(int device, tp__dtype dtype, const tp__shape *shape, const void *data)
{
  tp_error err = {0};
  tp__device_buffer *b = NULL;
  assert_ok(tp__device_buffer_new(client, device, dtype, shape, data, &b, &err));
  return b;
}

static void get(tp__device_buffer *b, void *data, size_t size)
{
  tp_error err = {0};
  tp__event *event = NULL;
  assert_ok(tp__device_buffer_read(b, data, size, &event, &err));
  assert_ok(tp__event_wait(event, &err));
}

/* Runs on one replica and reads the results. */
static void run_one(const char *text, tp__device_buffer **in, size_t n_in, void **out,
                    const size_t *size, size_t n_out)
{
  tp_error err = {0};
  tp__executable *x = compiled(text, 1);
  tp__device_buffer *result[8];
  assert_ok(tp__executable_run(x, in, n_in, result, n_out, NULL, &err));
  for (size_t i = 0; i < n_out; i++) {
    get(result[i], out[i], size[i]);
    tp__device_buffer_free(result[i]);
  }
  tp__executable_free(x);
}

static const char add[] = "module @add {\n"
                          "  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>)"
                          " -> tensor<4xf32> {\n"
                          "    %0 = stablehlo.add %a, %b : tensor<4xf32>\n"
                          "    return %0 : tensor<4xf32>\n"
                          "  }\n"
                          "}\n";

static void test_devices(void **state)
{
  (void)state;
  need_client();
  assert_int_equal(tp__client_devices(client), REPLICAS);
  assert_string_equal(tp__client_platform(client), "cpu");
  for (int i = 0; i < REPLICAS; i++) assert_string_equal(tp__client_device_kind(client, i), "cpu");
  assert_non_null(strstr(tp__plugin_version(plugin), "PJRT 0."));
  assert_non_null(strstr(tp__plugin_version(plugin), "StableHLO 1."));
  uint64_t limit = 0, used = 0;
  if (tp__client_memory(client, 0, &limit, &used)) assert_true(limit > 0 && used <= limit);
}

static void test_add(void **state)
{
  (void)state;
  need_client();
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40}, c[4] = {0};
  tp__device_buffer *in[] = {put(0, TP__F32, &four, a), put(0, TP__F32, &four, b)};
  a[0] = -1; /* data may change once the call has returned */
  run_one(add, in, 2, (void *[]){c}, (size_t[]){sizeof c}, 1);
  for (int i = 0; i < 4; i++) assert_true(c[i] == (float)(11 * (i + 1)));
  tp__device_buffer_free(in[0]);
  tp__device_buffer_free(in[1]);
}

/* What goes to the device comes back, for every type and for scalars. */
static void test_types(void **state)
{
  (void)state;
  need_client();
  uint8_t data[24 * 8], back[sizeof data];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 37 % 120);
  const tp__shape shape = {3, {2, 3, 4}}, scalar = {0, {0}};
  for (tp__dtype t = TP__F32; t <= TP__BF16; t++) {
    size_t size = tp__dtype_size(t);
    tp__device_buffer *b = put((int)t, t, &shape, data);
    memset(back, 0xff, sizeof back);
    get(b, back, 24 * size);
    assert_memory_equal(back, data, 24 * size);
    tp__device_buffer_free(b);
    b = put(0, t, &scalar, data + 8);
    get(b, back, size);
    assert_memory_equal(back, data + 8, size);
    tp__device_buffer_free(b);
  }
}

/* 3x3, stride 2, NHWC and HWIO, against loops. */
static void test_convolution(void **state)
{
  (void)state;
  need_client();
  static const char text[] =
      "module { func.func public @main(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>)"
      " -> tensor<2x4x4x4xf32> {\n"
      "  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, "
      "f],\n"
      "    window = {stride = [2, 2], pad = [[0, 1], [0, 1]]}\n"
      "    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}\n"
      "    : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x4x4xf32>\n"
      "  return %0 : tensor<2x4x4x4xf32> } }\n";
  static float x[2][8][8][3], w[3][3][3][4], y[2][4][4][4];
  for (size_t i = 0; i < sizeof x / 4; i++) ((float *)x)[i] = (float)(i * 37 % 11) - 5;
  for (size_t i = 0; i < sizeof w / 4; i++) ((float *)w)[i] = (float)(i * 13 % 7) - 3;
  tp__device_buffer *in[] = {put(0, TP__F32, &(tp__shape){4, {2, 8, 8, 3}}, x),
                             put(0, TP__F32, &(tp__shape){4, {3, 3, 3, 4}}, w)};
  run_one(text, in, 2, (void *[]){y}, (size_t[]){sizeof y}, 1);
  for (int n = 0; n < 2; n++)
    for (int i = 0; i < 16; i++)
      for (int k = 0; k < 4; k++) {
        float sum = 0;
        for (int p = 0; p < 9; p++) {
          int h = i / 4 * 2 + p / 3, v = i % 4 * 2 + p % 3;
          for (int c = 0; h < 8 && v < 8 && c < 3; c++)
            sum += x[n][h][v][c] * w[p / 3][p % 3][c][k];
        }
        assert_true(fabsf(sum - y[n][i / 4][i % 4][k]) < 1e-4f);
      }
  tp__device_buffer_free(in[0]);
  tp__device_buffer_free(in[1]);
}

/* Small whole numbers are exact in bfloat16, and so is their product in float32. */
static void test_bf16(void **state)
{
  (void)state;
  need_client();
  static const char text[] =
      "module { func.func public @main(%a: tensor<2x3xf32>, %b: tensor<3x2xbf16>)"
      " -> tensor<2x2xf32> {\n"
      "  %0 = stablehlo.convert %a : (tensor<2x3xf32>) -> tensor<2x3xbf16>\n"
      "  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]"
      " : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>\n"
      "  return %1 : tensor<2x2xf32> } }\n";
  const float a[] = {1, 2, 3, 4, 5, 6};
  /* 1, -2, 3, 0.5, 2, 1: the upper halves of their float32 */
  const uint16_t b[] = {0x3f80, 0xc000, 0x4040, 0x3f00, 0x4000, 0x3f80};
  const float want[] = {13, 2, 31, 0.5f};
  float got[4];
  tp__device_buffer *in[] = {put(0, TP__F32, &(tp__shape){2, {2, 3}}, a),
                             put(0, TP__BF16, &(tp__shape){2, {3, 2}}, b)};
  run_one(text, in, 2, (void *[]){got}, (size_t[]){sizeof got}, 1);
  assert_memory_equal(got, want, sizeof got);
  tp__device_buffer_free(in[0]);
  tp__device_buffer_free(in[1]);
}

static const char all_reduce[] =
    "module { func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<ui32>) {\n"
    "  %0 = \"stablehlo.all_reduce\"(%x) ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %s = stablehlo.add %a, %b : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}"
    " : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  %r = stablehlo.replica_id : tensor<ui32>\n"
    "  return %0, %r : tensor<4xf32>, tensor<ui32> } }\n";

static void test_all_reduce(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  tp__executable *x = compiled(all_reduce, REPLICAS);
  assert_int_equal(tp__executable_results(x), 2);
  tp__device_buffer *in[REPLICAS], *out[2 * REPLICAS];
  tp__event *event[REPLICAS];
  for (int r = 0; r < REPLICAS; r++)
    in[r] = put(r, TP__F32, &four, (float[]){(float)r + 1, 10 * ((float)r + 1), 0.5f, -(float)r});
  assert_ok(tp__executable_run(x, in, 1, out, 2, event, &err));
  for (int r = 0; r < REPLICAS; r++) assert_ok(tp__event_wait(event[r], &err));
  for (unsigned r = 0; r < REPLICAS; r++) {
    float y[4];
    uint32_t id = 99;
    get(out[2 * r], y, sizeof y);
    get(out[2 * r + 1], &id, sizeof id);
    assert_memory_equal(y, ((float[]){36, 360, 4, -28}), sizeof y);
    assert_int_equal(id, r);
    tp__device_buffer_free(in[r]);
    tp__device_buffer_free(out[2 * r]);
    tp__device_buffer_free(out[2 * r + 1]);
  }
  tp__executable_free(x);
}

/* A donated argument is gone after the run, and its owner frees it as any other. */
static void test_donation(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  static const char text[] =
      "module { func.func public @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32},"
      " %g: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = stablehlo.subtract %w, %g : tensor<4xf32>\n"
      "  return %0 : tensor<4xf32> } }\n";
  tp__executable *x = compiled(text, 1);
  tp__device_buffer *out[1];
  tp__device_buffer *in[] = {put(0, TP__F32, &four, (float[]){5, 6, 7, 8}),
                             put(0, TP__F32, &four, (float[]){1, 1, 1, 1})};
  for (int step = 0; step < 3; step++) { /* fed back, as a trainer does */
    assert_ok(tp__executable_run(x, in, 2, out, 1, NULL, &err));
    assert_true(tp__device_buffer_is_gone(in[0]));
    assert_false(tp__device_buffer_is_gone(in[1]));
    tp__device_buffer *none[1];
    assert_fails(tp__executable_run(x, in, 2, none, 1, NULL, &err), TP_ERR_DEVICE, "donated");
    tp__device_buffer_free(in[0]);
    in[0] = out[0];
  }
  float y[4];
  get(in[0], y, sizeof y);
  assert_memory_equal(y, ((float[]){2, 3, 4, 5}), sizeof y);
  tp__device_buffer_free(in[0]);
  tp__device_buffer_free(in[1]);
  tp__executable_info info;
  tp__executable_info_of(x, &info);
  if (info.argument_bytes > 0) assert_true(info.alias_bytes >= 16 && info.argument_bytes >= 32);
  tp__executable_free(x);
}

static void test_wrong_modules(void **state)
{
  (void)state;
  need_client();
  static const struct {
    const char *text, *part;
  } wrong[] = {
      {"module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
       "  %0 = \"stablehlo.frobnicate\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
       "  return %0 : tensor<4xf32> } }\n",
       "operator stablehlo.frobnicate: "},
      {"module { func.func public @main(%a: tensor<4xf32>) -> tensor<5xf32> {\n"
       "  %0 = \"stablehlo.abs\"(%a) : (tensor<4xf32>) -> tensor<5xf32>\n"
       "  return %0 : tensor<5xf32> } }\n",
       "operator stablehlo.abs: "},
      {"module { func.func private @other() { return } }\n", "main"},
      {"not a module at all", "does not compile"},
      {"", "does not compile"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tp_error err = {0};
    tp__executable *x = NULL;
    size_t length = strlen(wrong[i].text);
    assert_fails(tp__executable_new(client, wrong[i].text, length, 1, NULL, &x, &err),
                 TP_ERR_DEVICE, wrong[i].part);
    assert_null(x);
    char path[512] = ""; /* the module is kept, with what the compiler said */
    const char *at = strstr(err.text, "it is kept as ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "it is kept as %511[^:]", path), 1);
    tp__buffer file;
    tp__buffer_init(&file, 1 << 20);
    assert_ok(tp__file_read(path, &file, &err));
    assert_true(file.size > length + 3);
    assert_memory_equal(file.data, wrong[i].text, length);
    assert_memory_equal(file.data + length, "\n//", 3);
    tp__buffer_free(&file);
    assert_int_equal(unlink(path), 0);
  }
}

static void test_wrong_arguments(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  tp__executable *x = NULL;
  assert_fails(tp__executable_new(client, add, strlen(add), REPLICAS + 1, NULL, &x, &err),
               TP_ERR_DEVICE, "9 replicas wanted; cpu has 8 devices");
  assert_fails(tp__executable_new(client, add, strlen(add), 0, NULL, &x, &err), TP_ERR_DEVICE,
               "0 replicas");
  x = compiled(add, 1);
  const float data[8] = {0};
  tp__device_buffer *good = put(0, TP__F32, &four, data), *elsewhere = put(7, TP__F32, &four, data),
                    *longer = put(0, TP__F32, &(tp__shape){1, {8}}, data), *out[2];
  const struct {
    tp__device_buffer *in[2];
    size_t n_in, n_out;
    tp_status status;
    const char *part;
  } wrong[] = {
      {{good, elsewhere}, 2, 1, TP_ERR_DEVICE, "device"},
      {{good, longer}, 2, 1, TP_ERR_DEVICE, "size"},
      {{good, good}, 1, 1, TP_ERR_DEVICE, "supplied 1"},
      {{good, good}, 2, 2, TP_ERR_INTERNAL, "1 results, not 2"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_fails(tp__executable_run(x, wrong[i].in, wrong[i].n_in, out, wrong[i].n_out, NULL, &err),
                 wrong[i].status, wrong[i].part);
  tp__device_buffer *in[] = {good, good}; /* and it still works */
  assert_ok(tp__executable_run(x, in, 2, out, 1, NULL, &err));
  float small[2];
  tp__event *event = NULL;
  assert_fails(tp__device_buffer_read(out[0], small, sizeof small, &event, &err), TP_ERR_DEVICE,
               "");
  tp__device_buffer_free(out[0]);
  tp__device_buffer_free(good);
  tp__device_buffer_free(elsewhere);
  tp__device_buffer_free(longer);
  assert_fails(tp__device_buffer_new(client, REPLICAS, TP__F32, &four, data, &good, &err),
               TP_ERR_INTERNAL, "device 8 of 8");
  tp__executable_free(x);
}

/* What a plugin says of options: older ones take any name, newer ones name the unknown one. */
static void test_wrong_options(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  tp__client *other = NULL;
  tp__client_option option[] = {{.name = "cpu_device_count", .number = 3},
                                {.name = "no_such_option", .number = 1}};
  tp_status status = tp__client_new(plugin, option, 2, &other, &err);
  if (status == TP_OK)
    assert_int_equal(tp__client_devices(other), 3);
  else
    assert_non_null(strstr(err.text, "no_such_option"));
  assert_int_equal(status == TP_OK, strcmp(plugin_name, PJRT_CPU_115) != 0);
  tp__client_free(other);
}

/* A long run ends after its start has returned, and its event says when. */
static void test_events(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  static const char text[] =
      "module { func.func public @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {\n"
      "  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]"
      " : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>\n"
      "  return %0 : tensor<512x512xf32> } }\n";
  enum { N = 512, RUNS = 8 };
  static float ones[N * N], back[N * N];
  for (int i = 0; i < N * N; i++) ones[i] = 1.0f / N;
  tp__executable *x = compiled(text, 1);
  tp__device_buffer *in = put(0, TP__F32, &(tp__shape){2, {N, N}}, ones), *out[RUNS];
  tp__event *event[RUNS], *read = NULL;
  for (int i = 0; i < RUNS; i++) /* all are under way before the first is waited for */
    assert_ok(tp__executable_run(x, &in, 1, &out[i], 1, &event[i], &err));
  assert_ok(tp__device_buffer_read(out[RUNS - 1], back, sizeof back, &read, &err));
  tp__device_buffer_free(in); /* what runs keeps what it needs */
  assert_ok(tp__event_wait(read, &err));
  for (int i = 0; i < N * N; i++) assert_true(fabsf(back[i] * N - 1) < 1e-4f);
  for (int i = 0; i < RUNS; i++) {
    if (i % 2 == 0)
      assert_ok(tp__event_wait(event[i], &err));
    else
      tp__event_free(event[i]);
    tp__device_buffer_free(out[i]);
  }
  assert_ok(tp__event_wait(NULL, &err));
  tp__executable_free(x);
}

int main(int argc, char **argv)
{
  if (argc > 1) plugin_name = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_add),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_convolution),
      cmocka_unit_test(test_bf16),
      cmocka_unit_test(test_all_reduce),
      cmocka_unit_test(test_donation),
      cmocka_unit_test(test_wrong_modules),
      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_wrong_options),
      cmocka_unit_test(test_events),
  };
  return cmocka_run_group_tests(tests, open_client, close_client);
}
