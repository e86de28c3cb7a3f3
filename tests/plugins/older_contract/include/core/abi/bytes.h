/* A borrowed run of bytes, as it crosses the contract. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct TenonBytes {
  const uint8_t* data;
  size_t size;
} TenonBytes;
