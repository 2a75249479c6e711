/* test_net_summary - the layer table is Keras' own, byte for byte.
 *
 * Expected: keras_summary_b0.txt.gz, printed by Keras 3.15.1 (tests/ref/keras_layers.py); the
 * frozen totals are those of the same model with base.trainable = False, where only the head's 1280
 * x 104 + 104 numbers remain.
 */
#include "fixture.h"
#include "model/net.h"

static const tp__model_spec b0 = {
    .name = "efficientnet-b0", .height = 192, .width = 192, .classes = 104, .dropout = 0.2f};

static char *summary(const tp__model_spec *spec, int last_n)
{
  tp_error err = {0};
  tp__net *net = NULL;
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  assert_ok(tp__net_build(spec, false, &net, &err));
  assert_ok(tp__net_freeze(net, last_n, &err));
  assert_ok(tp__net_summary(net, spec, &text, &err));
  tp__net_free(net);
  return (char *)text.data;
}

static void the_table_is_keras(void **state)
{
  (void)state;
  char *wanted = read_fixture("keras_summary_b0.txt.gz"), *mine = summary(&b0, -1);
  char *w = wanted, *m = mine;
  for (int line = 1; *w != '\0' || *m != '\0'; line++) {
    size_t nw = strcspn(w, "\n"), nm = strcspn(m, "\n");
    if (nw != nm || memcmp(w, m, nw) != 0)
      fail_msg("line %d:\n%.*s\nwanted:\n%.*s", line, (int)nm, m, (int)nw, w);
    w += nw + (w[nw] == '\n');
    m += nm + (m[nm] == '\n');
  }
  free(wanted);
  free(mine);
}

static void frozen_totals(void **state)
{
  (void)state;
  char *text = summary(&b0, 0);
  assert_non_null(strstr(text, " Total params: 4,182,795 (15.96 MB)\n"
                               " Trainable params: 133,224 (520.41 KB)\n"
                               " Non-trainable params: 4,049,571 (15.45 MB)\n"));
  free(text);
  tp__model_spec spec = b0;
  spec.classes = 0;
  text = summary(&spec, 0);
  assert_non_null(strstr(text, " Trainable params: 0 (0.00 B)\n"));
  free(text);
}

/* A text that may not grow enough is an error, not a cut table. */
static void no_room(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__net *net = NULL;
  tp__buffer text;
  tp__buffer_init(&text, 5000);
  assert_ok(tp__net_build(&b0, false, &net, &err));
  assert_fails(tp__net_summary(net, &b0, &text, &err), TP_ERR_DATA, "limit of 5000");
  tp__buffer_free(&text);
  tp__net_free(net);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_is_keras),
      cmocka_unit_test(frozen_totals),
      cmocka_unit_test(no_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
