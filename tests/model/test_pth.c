/* Proves that PyTorch files give their tensors and that a pickle can do nothing else: no import, no
 * call, no endless memory. Expected: the opcodes of Python's pickletools.py, the file forms of
 * torch/serialization.py; the files are put together byte by byte. Hostile: most of it, with
 * os.system first. */
#include "weights_testing.h"

#include <zip.h>

enum { ROOM = 1 << 16 };

typedef struct bytes {
  uint8_t data[ROOM];
  size_t size;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
  assert_true(b->size + size <= ROOM);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

/* One character an opcode, as pickletools prints them, and four helpers:
 *   'text'  BINUNICODE     #n,  BININT n     $T,  torch.TStorage     @  _rebuild_tensor_v2     %xx
 * a byte */
static void assemble(bytes *b, const char *program)
{
  for (const char *p = program; *p != '\0'; p++) {
    if (*p == '\'') {
      const char *from = ++p;
      while (*p != '\'') p++;
      uint32_t n = (uint32_t)(p - from);
      put(b, "X", 1);
      put(b, &n, 4);
      put(b, from, n);
    } else if (*p == '#') {
      char *end = NULL;
      int32_t n = (int32_t)strtol(p + 1, &end, 10);
      put(b, "J", 1);
      put(b, &n, 4);
      p = end;
    } else if (*p == '$') {
      const char *from = ++p;
      while (*p != ',') p++;
      put(b, "ctorch\n", 7);
      put(b, from, (size_t)(p - from));
      put(b, "Storage\n", 8);
    } else if (*p == '@') {
      put(b, "ctorch._utils\n_rebuild_tensor_v2\n", 33);
    } else if (*p == '%') {
      uint8_t byte = (uint8_t)strtol((char[]){p[1], p[2], '\0'}, NULL, 16);
      put(b, &byte, 1);
      p += 2;
    } else {
      put(b, p, 1);
    }
  }
}

/* The storage with key 0: six floats 0..5. */
#define STORAGE "('storage'$Float,'0''cpu'#6,NtQ"

/* A legacy file with that object and storage 0. */
static const char *legacy_file(const char *object)
{
  static bytes b;
  b.size = 0;
  assemble(&b,
           "%80%02%8a%0a%6c%fc%9c%46%f9%20%6a%a8%50%19.%80%02M%e9%03.%80%02}('little_endian'%88u.");
  assemble(&b, "%80%02");
  assemble(&b, object);
  assemble(&b, "%80%02]('0'e.");
  const int64_t n = 6;
  const float value[] = {0, 1, 2, 3, 4, 5};
  put(&b, &n, sizeof n);
  put(&b, value, sizeof value);
  return put_file("legacy.pth", b.data, b.size);
}

static void expect(const char *path, const char *name, size_t count, const float *value)
{
  tp_error err;
  tp__tensors set = {0};
  const char *format = NULL;
  assert_ok(tp__weights_read(path, &set, &format, NULL, &err));
  assert_string_equal(format, "pytorch");
  const tp__tensor *t = tp__tensors_find(&set, name);
  if (t == NULL) fail_msg("%s is missing", name);
  assert_int_equal(tp__tensor_bytes(t), count * sizeof *value);
  assert_memory_equal(t->data, value, count * sizeof *value);
  tp__tensors_free(&set);
}

static void tensors_and_strides(void **state)
{
  (void)state;
  static const struct {
    const char *object;
    size_t count;
    float value[6];
  } cases[] = {
      {"}'w'@(" STORAGE "#0,(#2,#3,t(#3,#1,t%89NtRs.", 6, {0, 1, 2, 3, 4, 5}},
      {"}'w'@(" STORAGE "#0,(#3,#2,t(#1,#3,t%89NtRs.", 6, {0, 3, 1, 4, 2, 5}}, /* transposed */
      {"}'w'@(" STORAGE "#1,(#2,t(#2,t%89NtRs.", 2, {1, 3}}, /* offset, every second */
      {"}'w'ctorch._utils\n_rebuild_tensor\n(" STORAGE "#2,(#2,t(#1,ttRs.",
       2,
       {2, 3}},                                                 /* before 0.4 */
      {"}'w'@(" STORAGE "#5,))%89NtRs.", 1, {5}},               /* a scalar */
      {"}'w'@(" STORAGE "#4,(#3,t(#0,t%89NtRs.", 3, {4, 4, 4}}, /* expanded */
      {"ccollections\nOrderedDict\n)R('w'@(" STORAGE
       "#0,(#1,t(#1,t%89ccollections\nOrderedDict\n)RtRu"
       "}'_metadata'Nsb.",
       1,
       {0}},
      {"}'epoch'#3,s'state_dict'}'w'@(" STORAGE "#2,(#1,t(#1,t%89NtRss.", 1, {2}},
      {"}'w'ctorch._utils\n_rebuild_parameter\n(@(" STORAGE "#3,(#1,t(#1,t%89NtR%88NtRs.", 1, {3}},
      {"}(%8c%01w%8c%0ctorch._utils%8c%12_rebuild_tensor_v2%93(" STORAGE
       "K%04K%01%85K%01%85%89NtRu.",
       1,
       {4}},
      {"}'w'@(" STORAGE "%94#1,(#1,t(#1,t%89NtRs'v'@(h%00#0,(#1,t(#1,t%89NtRs.",
       1,
       {1}},                                                    /* a shared storage */
      {"}'w'@(" STORAGE "#0,(#0,#5,t(#9,#9,t%89NtRs.", 0, {0}}, /* nothing in it */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    expect(legacy_file(cases[i].object), "w", cases[i].count, cases[i].value);
}

static void refused_programs(void **state)
{
  (void)state;
  static const struct {
    const char *object, *text;
  } cases[] = {
      {"cos\nsystem\n('rm -rf /'tR.", "wants to run 'os.system': refused"},
      {"%8c%08builtins%8c%04eval%93('1'tR.", "wants to run 'builtins.eval': refused"},
      {"c__builtin__\ngetattr\n.", "wants to run '__builtin__.getattr': refused"},
      {"ctorch\nload\n.", "wants to run 'torch.load': refused"},
      {"ctorch.storage\nFloatStorage\n.", "refused"},
      {"cefficientnet\nEfficientNet\n)%81.", "save model.state_dict() instead of the model"},
      {"ca\x1b[31m\nb\n.", "wants to run 'a?[31m.b'"},
      {"(ios\nsystem\n.", "an opcode that is not allowed (opcode 0x69"},
      {"(o.", "an opcode that is not allowed"},
      {"%82%01.", "an opcode that is not allowed"},
      {"P123\n.", "an opcode that is not allowed"},
      {"$Float,)R.", "a storage called as a function"},
      {"}'w''v's'a'b.", "holds no state dict"}, /* BUILD on a dict only drops the state */
      {"#1,'a'b.", "sets the state of something that is no dict"},
      {"#1,)R.", "calls something that is no function"},
      {".", "takes from an empty stack"},
      {"t.", "no mark on the stack"},
      {"#1,(%85.", "takes from an empty stack"},
      {"#1,(0.", "takes from an empty stack"},
      {"h%05.", "was not remembered"},
      {"q%00.", "remembers from an empty stack"},
      {"#1,r%ff%ff%ff%7f.", "memo of more than a million"},
      {"X%ff%ff%ff%ff.", "ends in the middle of a value"},
      {"%8a%ff.", "ends in the middle of a value"},
      {"cos", "ends in the middle of a name"},
      {"%80%09.", "newer than 5"},
      {"'a's.", "takes from an empty stack"},
      {"}('a'u.", "no list or dict"},
      {"}#1,a.", "no list or dict"},
      {"#1,.", "holds no state dict"},
      {"}'w'@(" STORAGE "#0,(#7,t(#1,t%89NtRs.", "beyond its storage"},
      {"}'w'@(" STORAGE "#6,))%89NtRs.", "beyond its storage"},
      {"}'w'@(" STORAGE
       "#0,(#2147483647,#2147483647,#2147483647,t(#2147483647,#2147483647,#2147483647,t%89NtRs.",
       "beyond its storage"},
      {"}'w'@(" STORAGE "#0,(#2147483647,#2147483647,t(#0,#0,t%89NtRs.",
       "too large for a file of this size"},
      {"}'w'@(" STORAGE "#0,(#2,t(#-1,t%89NtRs.", "unexpected arguments"},
      {"}'w'@(" STORAGE "#-1,(#2,t(#1,t%89NtRs.", "unexpected arguments"},
      {"}'w'@(" STORAGE "#0,(#2,t)%89NtRs.", "unexpected arguments"},
      {"}'w'@(#1,#0,(#2,t(#1,t%89NtRs.", "unexpected arguments"},
      {"}'w'@)Rs.", "unexpected arguments"},
      {"('storage'$Float,'0''cpu'#-6,NtQ.", "unexpected arguments"},
      {"('storage'ccollections\nOrderedDict\n'0''cpu'#6,NtQ.", "unexpected arguments"},
      {"('module'$Float,'0''cpu'#6,NtQ.", "unexpected arguments"},
      {STORAGE "('storage'$Half,'0''cpu'#6,NtQ.", "one storage with two types"},
      {"}'w'@(('storage'$Float,'1''cpu'#6,NtQ#0,(#1,t(#1,t%89NtRs.", "used by no tensor"},
      {"}'w'@(('storage'$Float,'0''cpu'#7,NtQ#0,(#1,t(#1,t%89NtRs.", "another length"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_refused(legacy_file(cases[i].object), cases[i].text);
  }
}

/* Deep and wide programs: limits, not crashes. */
static void endless_programs(void **state)
{
  (void)state;
  static const struct {
    const char *opcode, *text;
    size_t count;
  } cases[] = {
      {"(", "nested too deeply", 20 << 20},
      {"N", "stack of more than a million", 20 << 20},
      {"\x85", "has no end", 100}, /* a tuple in a tuple in a tuple ... */
      {")0", "needs more than 256 MB", 5 << 20},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bytes head = {.size = 0};
    assemble(&head, "%80%02%8a%0a%6c%fc%9c%46%f9%20%6a%a8%50%19.%80%02M%e9%03.%80%02}('little_"
                    "endian'%88u.%80%02N");
    size_t n = strlen(cases[i].opcode), size = head.size + n * cases[i].count;
    uint8_t *file = malloc(size);
    memcpy(file, head.data, head.size);
    for (size_t k = head.size; k < size; k++)
      file[k] = (uint8_t)cases[i].opcode[(k - head.size) % n];
    assert_refused(put_file("endless.pth", file, size), cases[i].text);
    free(file);
  }
}

static void damaged_legacy_files(void **state)
{
  (void)state;
  tp_error err;
  tp__buffer b;
  tp__buffer_init(&b, ROOM);
  assert_ok(tp__file_read(legacy_file("}'w'@(" STORAGE "#0,(#2,#3,t(#3,#1,t%89NtRs."), &b, &err));
  for (size_t size = 3; size < b.size; size++) {
    tp__tensors set = {0};
    assert_int_equal(tp__weights_read(put_file("cut.pth", b.data, size), &set, NULL, NULL, &err),
                     TP_ERR_DATA);
    assert_int_equal(set.count, 0);
  }
  b.data[5] ^= 1;
  assert_refused(put_file("magic.pth", b.data, b.size), "magic number differs");
  tp__buffer_free(&b);
}

/* ---- the zip form ---- */

typedef struct member {
  const char *name;
  const void *data;
  size_t size;
} member;

static const char *zip_file(const member *m, size_t count)
{
  const char *path = in_test_folder("new.pth");
  int code = 0;
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
  assert_non_null(zip);
  for (size_t i = 0; i < count; i++) {
    zip_source_t *source = zip_source_buffer(zip, m[i].data, m[i].size, 0);
    assert_true(zip_file_add(zip, m[i].name, source, 0) >= 0);
  }
  assert_int_equal(zip_close(zip), 0);
  return path;
}

static void zipped(void **state)
{
  (void)state;
  static const float value[] = {0, 1, 2, 3, 4, 5}, wanted[] = {0, 3, 1, 4, 2, 5};
  static bytes b, evil;
  b.size = evil.size = 0;
  assemble(&b, "%80%02}'w'@(" STORAGE "#0,(#3,#2,t(#1,#3,t%89NtRs.");
  assemble(&evil, "%80%02cposix\nsystem\n('true'tR.");
  size_t bomb = (size_t)100 << 20;
  void *zeros = calloc(bomb, 1);
  member m[] = {{"archive/data.pkl", b.data, b.size},
                {"archive/byteorder", "little", 6},
                {"archive/data/0", value, sizeof value},
                {"archive/version", "3\n", 2}};
  expect(zip_file(m, 4), "w", 6, wanted);
  m[1].data = "bigger";
  assert_refused(zip_file(m, 4), "big-endian");
  m[1].data = "little";
  m[2].size = 20;
  assert_refused(zip_file(m, 4), "has 20 bytes, its tensors need 24");
  m[2] = (member){"archive/data/0", zeros, bomb};
  assert_refused(zip_file(m, 4), "too large for a file of this size");
  m[2] = (member){"archive/data/1", value, sizeof value};
  assert_refused(zip_file(m, 4), "member archive/data/0 is not in the zip file");
  m[0].data = evil.data;
  m[0].size = evil.size;
  assert_refused(zip_file(m, 4), "data.pkl: wants to run 'posix.system': refused");
  m[0].name = "readme.txt";
  assert_refused(zip_file(m, 1), "without weights");
  m[0].name = "model.weights.h5";
  assert_refused(zip_file(m, 1), "model.weights.h5: not a readable HDF5 file");
  assert_refused(put_file("short.pth", "PK\3\4 and no more", 16), "not a readable zip file");
  free(zeros);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tensors_and_strides),
      cmocka_unit_test(refused_programs),
      cmocka_unit_test(endless_programs),
      cmocka_unit_test(damaged_legacy_files),
      cmocka_unit_test(zipped),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
