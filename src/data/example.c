/* example - see example.h */
#include "example.h"

#include <stdlib.h>
#include <string.h>

#include "example.pb-c.h"

/* ---- memory: protobuf-c asks for many small pieces; they come from chunks and are given back all
 * at once ---- */

enum { CHUNK = 64 * 1024 };

struct tp__example_chunk {
  struct tp__example_chunk *older;
  size_t used, size;
  _Alignas(16) unsigned char data[];
};

static void *chunk_alloc(void *arg, size_t size)
{
  tp__example *e = arg;
  if (size > e->limit - e->used) return NULL; /* used never passes limit */
  e->used += size;
  size = (size + 15) / 16 * 16;
  struct tp__example_chunk *c = e->chunk;
  if (c == NULL || c->size - c->used < size) {
    size_t bytes = c == NULL ? CHUNK : 2 * c->size;
    if (bytes < size) bytes = size;
    c = malloc(sizeof *c + bytes);
    if (c == NULL) return NULL;
    *c = (struct tp__example_chunk){.older = e->chunk, .size = bytes};
    e->chunk = c;
  }
  void *p = c->data + c->used;
  c->used += size;
  return p;
}

static void chunk_free(void *arg, void *p)
{
  (void)arg;
  (void)p;
}

static void free_chunks(struct tp__example_chunk *c)
{
  while (c != NULL) {
    struct tp__example_chunk *older = c->older;
    free(c);
    c = older;
  }
}

/* Keeps the newest chunk, the largest, so that after a few records nothing is allocated any more.
 */
static void start_over(tp__example *e, size_t payload_size)
{
  if (e->chunk != NULL) {
    free_chunks(e->chunk->older);
    e->chunk->older = NULL;
    e->chunk->used = 0;
  }
  /* A parsed number takes 8 bytes where the payload may spend 1; a list of many unpacked ones more
   * while it is read. */
  const size_t fixed = (size_t)64 << 20;
  e->limit = payload_size < (SIZE_MAX - fixed) / 10 ? payload_size * 10 + fixed : SIZE_MAX;
  e->used = 0;
  e->message = NULL;
}

void tp__example_free(tp__example *example)
{
  free_chunks(example->chunk);
  *example = (tp__example){0};
}

/* ---- reading ---- */

tp_status tp__example_parse(tp__example *e, const uint8_t *payload, size_t size, tp_error *err)
{
  start_over(e, size);
  ProtobufCAllocator allocator = {.alloc = chunk_alloc, .free = chunk_free, .allocator_data = e};
  e->payload = payload;
  e->payload_size = size;
  e->message = tepal__example__unpack(&allocator, size, payload);
  if (e->message != NULL) return TP_OK;
  return tp__fail(err, TP_ERR_DATA,
                  "its %zu bytes are no tf.train.Example (protobuf cannot parse them)", size);
}

/* Features of the parsed message, and how many there are. */
static Tepal__Entry **entries(const tp__example *e, size_t *count)
{
  const Tepal__Example *message = e->message;
  *count = message != NULL && message->features != NULL ? message->features->n_feature : 0;
  return *count > 0 ? message->features->feature : NULL;
}

static const Tepal__Feature *find(const tp__example *e, const char *key)
{
  size_t count = 0, size = strlen(key);
  Tepal__Entry **entry = entries(e, &count);
  static const Tepal__Feature nothing = TEPAL__FEATURE__INIT;
  for (size_t i = count; i-- > 0;) /* from the end: the last one wins */
    if (entry[i]->key.len == size && (size == 0 || memcmp(entry[i]->key.data, key, size) == 0))
      return entry[i]->value != NULL ? entry[i]->value : &nothing;
  return NULL;
}

static tp__feature describe(const Tepal__Feature *f)
{
  tp__feature out = {.kind = TP__FEATURE_MISSING};
  if (f == NULL) return out;
  int kinds = (f->bytes_list != NULL) + (f->int64_list != NULL) + (f->float_list != NULL);
  if (kinds != 1) {
    out.kind = kinds == 0 ? TP__FEATURE_EMPTY : TP__FEATURE_MIXED;
  } else if (f->bytes_list != NULL) {
    out.kind = TP__FEATURE_BYTES;
    out.count = f->bytes_list->n_value;
    if (out.count > 0) {
      out.bytes = f->bytes_list->value[0].data;
      out.size = f->bytes_list->value[0].len;
    }
  } else if (f->int64_list != NULL) {
    out.kind = TP__FEATURE_INT64;
    out.count = f->int64_list->n_value;
    out.int64s = f->int64_list->value;
  } else {
    out.kind = TP__FEATURE_FLOAT;
    out.count = f->float_list->n_value;
    out.floats = f->float_list->value;
  }
  return out;
}

tp__feature tp__example_find(const tp__example *example, const char *key)
{
  return describe(find(example, key));
}

static const char *kind_name(tp__feature_kind kind)
{
  return kind == TP__FEATURE_BYTES ? "byte string" : kind == TP__FEATURE_INT64 ? "int64" : "float";
}

/* The names that are there, as far as they fit; odd bytes as '?'. */
static void list_keys(const tp__example *e, char *text, size_t size)
{
  size_t count = 0, used = 0;
  Tepal__Entry **entry = entries(e, &count);
  snprintf(text, size, "none");
  for (size_t i = 0; i < count; i++) {
    if (entry[i]->key.len + 8 > size - used) {
      snprintf(text + used, size - used, ", ...");
      return;
    }
    used += (size_t)snprintf(text + used, size - used, i == 0 ? "\"" : ", \"");
    for (size_t k = 0; k < entry[i]->key.len; k++) {
      uint8_t c = entry[i]->key.data[k];
      text[used++] = c < 32 || c == 127 ? '?' : (char)c;
    }
    used += (size_t)snprintf(text + used, size - used, "\"");
  }
}

/* A list of that kind with exactly one value, or an error that says what was found. */
static tp_status want_one(const tp__example *e, const char *key, tp__feature_kind wanted,
                          const Tepal__Feature **feature, tp_error *err)
{
  *feature = find(e, key);
  tp__feature f = describe(*feature);
  if (f.kind == wanted && f.count == 1) return TP_OK;
  const char *name = kind_name(wanted);
  if (f.kind == TP__FEATURE_MISSING) {
    char keys[300];
    list_keys(e, keys, sizeof keys);
    return tp__fail(err, TP_ERR_DATA,
                    "feature \"%s\" (wanted: one %s) is missing; the record has: %s", key, name,
                    keys);
  }
  if (f.kind == TP__FEATURE_EMPTY || f.kind == TP__FEATURE_MIXED)
    return tp__fail(err, TP_ERR_DATA, "feature \"%s\": wanted one %s, found %s", key, name,
                    f.kind == TP__FEATURE_EMPTY ? "a feature without list"
                                                : "lists of several kinds in one feature");
  return tp__fail(err, TP_ERR_DATA, "feature \"%s\": wanted one %s, found a list of %zu %s%s", key,
                  name, f.count, kind_name(f.kind), f.count == 1 ? "" : "s");
}

tp_status tp__example_int64(const tp__example *example, const char *key, int64_t *value,
                            tp_error *err)
{
  const Tepal__Feature *f;
  TP__TRY(want_one(example, key, TP__FEATURE_INT64, &f, err));
  *value = f->int64_list->value[0];
  return TP_OK;
}

/* ---- where a byte string lies in the payload ---- */

static bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t *value)
{
  *value = 0;
  for (int shift = 0; *p < end && shift < 64; shift += 7) {
    uint8_t byte = *(*p)++;
    *value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/* Follows the field numbers Example.features, Features.feature, Entry.value, Feature.bytes_list,
 * BytesList.value down the wire and returns the first byte string that equals the wanted one.
 * protobuf-c, which accepted the payload, decided which string that is; this only finds it again,
 * in one pass, so that the caller need not keep protobuf-c's copy. */
static const uint8_t *locate(const uint8_t *p, size_t size, int depth,
                             const ProtobufCBinaryData *wanted)
{
  static const uint32_t path[] = {1, 1, 2, 1, 1};
  enum { LEAF = 4, VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };
  const uint8_t *end = p + size, *found = NULL;
  while (p < end && found == NULL) {
    uint64_t tag = 0, length = 0;
    if (!get_varint(&p, end, &tag)) return NULL;
    switch (tag & 7) {
    case VARINT:
      if (!get_varint(&p, end, &length)) return NULL;
      length = 0;
      break;
    case FIXED64:
      length = 8;
      break;
    case FIXED32:
      length = 4;
      break;
    case DELIMITED:
      if (!get_varint(&p, end, &length)) return NULL;
      break;
    default:
      return NULL;
    }
    if (length > (uint64_t)(end - p)) return NULL;
    if (tag == (path[depth] << 3 | DELIMITED)) {
      if (depth < LEAF)
        found = locate(p, (size_t)length, depth + 1, wanted);
      else if (length == wanted->len && memcmp(p, wanted->data, wanted->len) == 0)
        found = p;
    }
    p += length;
  }
  return found;
}

tp_status tp__example_bytes(const tp__example *example, const char *key, const uint8_t **data,
                            size_t *size, tp_error *err)
{
  const Tepal__Feature *f;
  TP__TRY(want_one(example, key, TP__FEATURE_BYTES, &f, err));
  const ProtobufCBinaryData *value = &f->bytes_list->value[0];
  *size = value->len;
  *data = value->len == 0 ? example->payload
                          : locate(example->payload, example->payload_size, 0, value);
  if (*data == NULL)
    return tp__fail(err, TP_ERR_INTERNAL, "feature \"%s\": its bytes are not found again", key);
  return TP_OK;
}

/* ---- writing ---- */

tp_status tp__example_pack(const tp__example_fields *fields, tp__buffer *out, tp_error *err)
{
  const char *keys[3] = {fields->class_feature != NULL ? fields->class_feature : "class",
                         fields->id_feature != NULL ? fields->id_feature : "id",
                         fields->image_feature != NULL ? fields->image_feature : "image"};
  ProtobufCBinaryData id = {0}, image = {.len = fields->image_size};
  if (fields->id != NULL) id = (ProtobufCBinaryData){strlen(fields->id), (uint8_t *)fields->id};
  image.data = (uint8_t *)fields->image; /* protobuf-c knows no const; packing only reads */
  int64_t label = fields->label;

  Tepal__Int64List numbers = TEPAL__INT64_LIST__INIT;
  numbers.n_value = 1;
  numbers.value = &label;
  Tepal__BytesList strings[2] = {TEPAL__BYTES_LIST__INIT, TEPAL__BYTES_LIST__INIT};
  strings[0].n_value = strings[1].n_value = 1;
  strings[0].value = &id;
  strings[1].value = &image;

  const bool present[3] = {fields->label >= 0, fields->id != NULL, true};
  Tepal__Feature feature[3];
  Tepal__Entry entry[3], *list[3];
  Tepal__Features features = TEPAL__FEATURES__INIT;
  features.feature = list;
  for (int i = 0; i < 3; i++) {
    if (!present[i]) continue;
    tepal__feature__init(&feature[i]);
    if (i == 0)
      feature[i].int64_list = &numbers;
    else
      feature[i].bytes_list = &strings[i - 1];
    tepal__entry__init(&entry[i]);
    entry[i].key = (ProtobufCBinaryData){strlen(keys[i]), (uint8_t *)keys[i]};
    entry[i].value = &feature[i];
    list[features.n_feature++] = &entry[i];
  }
  Tepal__Example message = TEPAL__EXAMPLE__INIT;
  message.features = &features;

  size_t size = tepal__example__get_packed_size(&message), need = 0;
  if (!tp__add_size(out->size, size, &need)) return tp__no_memory(err, size);
  TP__TRY(tp__buffer_reserve(out, need, err));
  out->size += tepal__example__pack(&message, out->data + out->size);
  return TP_OK;
}
