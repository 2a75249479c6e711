/* fuzz_example - any bytes as a tf.train.Example: parsing, looking features up, locating the image
 * in the payload, and writing what was read. Build with -Dfuzz=true and clang. */
#include <stdlib.h>
#include <string.h>

#include "data/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const uint8_t *image, size_t size)
{
  tp_error err;
  tp__example again = {0};
  tp__buffer out;
  tp__buffer_init(&out, SIZE_MAX / 2);
  tp__example_fields fields = {.image = image, .image_size = size, .label = 7, .id = "id"};
  const uint8_t *found;
  size_t found_size = 0;
  if (tp__example_pack(&fields, &out, &err) != TP_OK ||
      tp__example_parse(&again, out.data, out.size, &err) != TP_OK ||
      tp__example_bytes(&again, "image", &found, &found_size, &err) != TP_OK ||
      found_size != size || (size > 0 && memcmp(found, image, size) != 0))
    abort();
  tp__example_free(&again);
  tp__buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tp_error err;
  tp__example example = {0};
  if (tp__example_parse(&example, data, size, &err) == TP_OK) {
    const uint8_t *image;
    size_t image_size = 0;
    int64_t label = 0;
    tp__feature id = tp__example_find(&example, "id");
    if (id.kind == TP__FEATURE_BYTES && id.count > 0 && id.size > size) abort();
    tp_status status = tp__example_int64(&example, "class", &label, &err);
    if (status != TP_OK && status != TP_ERR_DATA) abort();
    status = tp__example_bytes(&example, "image", &image, &image_size, &err);
    if (status != TP_OK && status != TP_ERR_DATA) abort(); /* also: not found again */
    if (status == TP_OK) {
      if (image < data || image_size > size || image + image_size > data + size) abort();
      write_again(image, image_size);
    }
  }
  tp__example_free(&example);
  return 0;
}
