/* exif - the orientation tag of cameras and phones.
 *
 * EXIF 2.3 is a TIFF 6.0 structure: byte order mark, 42, offset of the first directory; a directory
 * is a count and 12-byte entries (tag, type, count, value). Orientation is tag 0x0112, type
 * SHORT, 1...8. Everything comes from the file, so every offset is checked; what makes no sense
 * counts as "no tag", as viewers do.
 */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

typedef struct tiff {
  const uint8_t *bytes;
  size_t size;
  bool big_endian;
} tiff;

static uint32_t get16(const tiff *t, size_t at)
{
  const uint8_t *b = t->bytes + at;
  return t->big_endian ? (uint32_t)b[0] << 8 | b[1] : (uint32_t)b[1] << 8 | b[0];
}

static uint32_t get32(const tiff *t, size_t at)
{
  return t->big_endian ? get16(t, at) << 16 | get16(t, at + 2)
                       : get16(t, at + 2) << 16 | get16(t, at);
}

int tp__exif_orientation(const uint8_t *bytes, size_t size)
{
  if (size < 14 || (memcmp(bytes, "II", 2) != 0 && memcmp(bytes, "MM", 2) != 0)) return 1;
  const tiff t = {bytes, size, bytes[0] == 'M'};
  size_t directory = get32(&t, 4);
  if (get16(&t, 2) != 42 || directory > size - 2) return 1;
  size_t entries = get16(&t, directory);
  for (size_t i = 0, at = directory + 2; i < entries && at + 12 <= size; i++, at += 12) {
    if (get16(&t, at) != 0x0112) continue;
    uint32_t value = get16(&t, at + 8);
    bool sensible = get16(&t, at + 2) == 3 && get32(&t, at + 4) == 1 && value >= 1 && value <= 8;
    return sensible ? (int)value : 1;
  }
  return 1;
}

tp_status tp__picture_turn(tp__picture *picture, int orientation, tp_error *err)
{
  if (orientation <= 1 || orientation > 8) return TP_OK;
  const ptrdiff_t h = picture->height, w = picture->width, last = h * w - 1;
  /* Output pixel (y, x) is input pixel first + y * down + x * right. */
  const struct {
    ptrdiff_t first, right, down;
  } walk[9] = {{0, 1, w},
               {0, 1, w},
               {w - 1, -1, w},
               {last, -1, -w},
               {(h - 1) * w, 1, -w},
               {0, w, 1},
               {(h - 1) * w, -w, 1},
               {last, -w, -1},
               {w - 1, w, -1}};
  const bool swap = orientation >= 5;
  const ptrdiff_t rows = swap ? w : h, columns = swap ? h : w;
  uint8_t *turned = tp__calloc((size_t)(h * w), 3, err);
  if (turned == NULL) return TP_ERR_INTERNAL;
  uint8_t *to = turned;
  for (ptrdiff_t y = 0; y < rows; y++) {
    const uint8_t *from =
        picture->rgb.data + 3 * (walk[orientation].first + y * walk[orientation].down);
    for (ptrdiff_t x = 0; x < columns; x++, to += 3, from += 3 * walk[orientation].right)
      memcpy(to, from, 3);
  }
  memcpy(picture->rgb.data, turned, (size_t)(h * w) * 3);
  free(turned);
  picture->height = (int)rows;
  picture->width = (int)columns;
  return TP_OK;
}
