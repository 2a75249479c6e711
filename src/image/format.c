/* format - recognizing picture formats by their first bytes, and refusing those that are not read.
 *
 * Signatures: JPEG ITU T.81 B.1.1.3 (SOI), PNG ISO 15948 5.2, GIF89a, RIFF/WebP, BMP, TIFF 6.0, ISO
 * base media "ftyp" (AVIF, HEIC), ISO 18181 (JPEG XL). Web pages are the usual thing that a failed
 * download leaves under a picture's name.
 */
#include <string.h>

#include "parts.h"

static bool starts(const uint8_t *bytes, size_t size, size_t at, const char *with, size_t length)
{
  return size >= at + length && memcmp(bytes + at, with, length) == 0;
}

#define STARTS(at, text) starts(bytes, size, at, text, sizeof text - 1)

/* Skips a byte order mark and blanks, then looks for the ways in which a page begins. */
static bool looks_like_page(const uint8_t *bytes, size_t size)
{
  static const char *const begins[] = {"<!doctype", "<html", "<head",  "<body",
                                       "<?xml",     "<!--",  "<script"};
  size_t at = STARTS(0, "\xef\xbb\xbf") ? 3 : 0;
  while (at < size && (bytes[at] == ' ' || (bytes[at] >= '\t' && bytes[at] <= '\r'))) at++;
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    size_t length = strlen(begins[i]), same = 0;
    while (same < length && at + same < size &&
           (bytes[at + same] | 0x20) == (begins[i][same] | 0x20))
      same++;
    if (same == length) return true;
  }
  return false;
}

tp__image_format tp__image_format_of(const uint8_t *bytes, size_t size)
{
  if (size == 0) return TP__FORMAT_EMPTY;
  if (STARTS(0, "\xff\xd8")) return TP__FORMAT_JPEG;
  if (STARTS(0, "\x89PNG")) return TP__FORMAT_PNG;
  if (STARTS(0, "GIF8")) return TP__FORMAT_GIF;
  if (STARTS(0, "RIFF") && STARTS(8, "WEBP")) return TP__FORMAT_WEBP;
  if (STARTS(0, "BM")) return TP__FORMAT_BMP;
  if (STARTS(0, "II*\0") || STARTS(0, "MM\0*")) return TP__FORMAT_TIFF;
  if (STARTS(4, "ftyp") || STARTS(0, "\xff\x0a") || STARTS(4, "JXL \r\n\x87\n"))
    return TP__FORMAT_JPEG_XL_OR_AVIF;
  return looks_like_page(bytes, size) ? TP__FORMAT_HTML : TP__FORMAT_UNKNOWN;
}

const char *tp__image_format_name(tp__image_format format)
{
  switch (format) {
  case TP__FORMAT_UNKNOWN:
    return "unknown";
  case TP__FORMAT_EMPTY:
    return "empty";
  case TP__FORMAT_JPEG:
    return "JPEG";
  case TP__FORMAT_PNG:
    return "PNG";
  case TP__FORMAT_GIF:
    return "GIF";
  case TP__FORMAT_WEBP:
    return "WebP";
  case TP__FORMAT_BMP:
    return "BMP";
  case TP__FORMAT_TIFF:
    return "TIFF";
  case TP__FORMAT_HTML:
    return "HTML";
  case TP__FORMAT_JPEG_XL_OR_AVIF:
    return "AVIF, HEIC or JPEG XL";
  }
  return "unknown";
}

tp_status tp__format_refuse(tp__image_format format, size_t size, tp_error *err)
{
  if (format == TP__FORMAT_EMPTY)
    return tp__fail(err, TP_ERR_DATA, "the picture is empty (0 bytes)");
  if (format == TP__FORMAT_HTML)
    return tp__fail(err, TP_ERR_DATA,
                    "not a picture but an HTML page (%zu bytes), as a failed download leaves it; "
                    "download it again",
                    size);
  if (format == TP__FORMAT_UNKNOWN)
    return tp__fail(
        err, TP_ERR_DATA,
        "not a picture: the first of its %zu bytes are those of no known format; JPEG and "
        "PNG are read",
        size);
  return tp__fail(
      err, TP_ERR_DATA,
      "a %s picture; only JPEG and PNG are read, whatever the file's name says: convert it",
      tp__image_format_name(format));
}
