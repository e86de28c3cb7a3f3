# Warnings, sanitizers and the compiler cache, for every target of the tree.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the tree and precompiled headers: so that builds in other folders (the wheel, other interpreters) share objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TENON_CCACHE})
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# A check that fails names its file in the tree, wherever the tree was built; and so trees in other folders share the compiler cache.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

# GCC 12 and 13 report overlaps and bounds inside std::string and std::vector that cannot happen (GCC bugs 105651, 105329, 107852).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()

add_compile_options(-Wall -Wextra -fvisibility=hidden -fvisibility-inlines-hidden -fdiagnostics-color=always)

if(TENON_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
elseif(TENON_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=thread)
endif()

# A change of one file of core links some thirty programs with LLVM again: mold does that ten times as fast. What users get is linked as ever.
find_program(TENON_MOLD mold)
if(TENON_MOLD AND NOT CMAKE_BUILD_TYPE STREQUAL Release)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold TENON_LINKS_WITH_MOLD)
  if(TENON_LINKS_WITH_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# tenon_unity(TARGET): with TENON_UNITY compiles the target's files eight at a time, which halves a full build.
option(TENON_UNITY "Compile several files at a time: faster from nothing, slower after a change" OFF)
function(tenon_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TENON_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# tenon_runs_once(TARGET): compiles it quickly in a release build. For tests: what they test is optimised, they are not.
function(tenon_runs_once target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()
