/* pickle - a restricted unpickler: enough of Python's pickle to read the tensors of a PyTorch file,
 * and nothing more.
 *
 * A pickle is a program for a stack machine. In Python it may import and call anything; here a
 * global is one of a short list, a call is one of a few functions done in C, and everything else is
 * refused by name. Opcodes understood:
 *
 *   PROTO FRAME STOP MARK POP NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT
 *
 *   BINUNICODE SHORT_BINUNICODE BINSTRING SHORT_BINSTRING EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
 *
 *   EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS
 *
 *   BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID
 *
 * Globals: collections.OrderedDict; _rebuild_tensor, _rebuild_tensor_v2 and _rebuild_parameter of
 * torch._utils; Float-, Double-, Half-, BFloat16-, Long-, Int- and ByteStorage of torch.
 *
 * (Python's pickletools.py describes the opcodes, torch/serialization.py and torch/_utils.py the
 * calls.) Nothing recurses, so depth is no danger; memory is limited in total. Values live in the
 * machine's arena and may form cycles: walk them to a fixed depth only.
 */
#ifndef TP_PICKLE_H
#define TP_PICKLE_H

#include "graph/tensor.h"

typedef enum tp__pickle_kind {
  TP__PICKLE_NONE,
  TP__PICKLE_BOOL,
  TP__PICKLE_INT,
  TP__PICKLE_FLOAT,
  TP__PICKLE_TEXT,
  TP__PICKLE_TUPLE,
  TP__PICKLE_LIST,
  TP__PICKLE_DICT, /* item: elements; a dict's are key, value, key, value ... */
  TP__PICKLE_GLOBAL,
  TP__PICKLE_STORAGE,
  TP__PICKLE_TENSOR
} tp__pickle_kind;

typedef struct tp__pickle_value tp__pickle_value;

struct tp__pickle_value {
  tp__pickle_kind kind;
  union {
    int64_t integer; /* INT, BOOL, GLOBAL (its number) */
    struct {
      const char *data; /* in the pickle's bytes, not terminated */
      size_t size;
    } text;
    struct {
      tp__pickle_value **item;
      size_t count, capacity;
    } list;
    struct {
      const tp__pickle_value *key; /* TEXT */
      tp__dtype dtype;
      int64_t elements;
      size_t index; /* for the reader of storages: its number, from 0, in order of first use */
    } storage;
    struct {
      const tp__pickle_value *storage;
      int64_t offset, stride[TP__RANK_MAX];
      tp__shape shape;
    } tensor;
  };
};

typedef struct tp__pickle {
  tp__arena arena;
  uint64_t used;              /* bytes asked of the arena */
  tp__pickle_value **storage; /* distinct ones, by key */
  size_t n_storages, storage_capacity;
} tp__pickle; /* born zeroed; may run several pickles of one file */

/* Runs one pickle that starts at data, which must outlive p. consumed: its length. Errors:
 * TP_ERR_DATA with the byte. */
tp_status tp__pickle_run(tp__pickle *p, const uint8_t *data, size_t size, size_t *consumed,
                         const tp__pickle_value **result, tp_error *err) TP_CHECKED;

bool tp__pickle_is_text(const tp__pickle_value *v, const char *text);

/* The value under a key of a dict; NULL when v is no dict or has no such key. */
const tp__pickle_value *tp__pickle_get(const tp__pickle_value *v, const char *key);

void tp__pickle_free(tp__pickle *p);

#endif
