# tenon_add_plugin(NAME KIND SOURCES files...
#                  [CORE] [VERSION 1.0] [DESCRIPTION "a sentence"] [PASSES names...] [SUFFIXES .abc...] [OPTIONS file.json]
#                  [LIBRARIES targets...] [NOT_INSTALLED])
#
# Builds the plugin NAME as the library lib/tenon/plugins/NAME.so of the build folder, with its manifest NAME.json beside it, and
# installs both. The build fails when the library exports anything but its entry. The same function serves Tenon's own plugins.
#
#   KIND           backend, passes or frontend
#   CORE           compiles Tenon's core (graph, op catalogue, rewriting) with this project's compiler, once a project, and links it
#   VERSION        by default the project's; TENON_PLUGIN_VERSION in the sources
#   PASSES         the passes of a library of passes; left out: one, named like the plugin
#   SUFFIXES       of the files that a frontend reads
#   OPTIONS        a file with a JSON object: for each key of the plugin's section of tenon.toml its "type", "default", "meaning"
#   NOT_INSTALLED  leaves the plugin out of an installation

function(tenon_add_plugin name kind)
  cmake_parse_arguments(PARSE_ARGV 2 plugin "CORE;NOT_INSTALLED" "VERSION;DESCRIPTION;OPTIONS" "SOURCES;PASSES;SUFFIXES;LIBRARIES")
  tenon_check_plugin_arguments()
  tenon_choose_version()

  add_library(${name} MODULE ${plugin_SOURCES})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX .so
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tenon/plugins
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_exports.map)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE TENON_PLUGIN_VERSION="${plugin_VERSION}")
  target_link_libraries(${name} PRIVATE TenonSDK::sdk ${plugin_LIBRARIES})
  if(plugin_CORE)
    tenon_core_for_plugins()
    target_link_libraries(${name} PRIVATE tenon_core)
    target_compile_definitions(${name} PRIVATE TENON_PLUGIN_CORE)
  endif()
  tenon_restrict_exports(${name})
  tenon_write_manifest(${name} ${kind})
  if(NOT plugin_NOT_INSTALLED)
    install(TARGETS ${name} LIBRARY DESTINATION lib/tenon/plugins)
    # Written anew: an installed library may be stripped, and has another run path.
    set(template ${CMAKE_CURRENT_BINARY_DIR}/${name}.manifest)
    set(finish ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/finish_plugin.cmake)
    install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND \"${CMAKE_COMMAND}\" \"-DLIBRARY=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/tenon/plugins/${name}.so\"
      \"-DNM=${CMAKE_NM}\" \"-DTEMPLATE=${template}\" -P \"${finish}\")")
  endif()
endfunction()

# What tenon_add_plugin was given, against what it takes.
macro(tenon_check_plugin_arguments)
  if(plugin_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_plugin(${name} ...): unknown arguments: ${plugin_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "tenon_add_plugin: the name '${name}' must be a lower-case letter, then lower-case letters, digits and _")
  endif()
  if(NOT kind MATCHES "^(backend|passes|frontend)$")
    message(FATAL_ERROR "tenon_add_plugin(${name} ${kind} ...): the kind must be backend, passes or frontend")
  endif()
  if(NOT plugin_SOURCES)
    message(FATAL_ERROR "tenon_add_plugin(${name} ...): SOURCES is missing")
  endif()
endmacro()

# The version that was given, or the project's.
macro(tenon_choose_version)
  if(NOT plugin_VERSION)
    set(plugin_VERSION ${PROJECT_VERSION})
  endif()
  if(NOT plugin_VERSION)
    set(plugin_VERSION 0)
  endif()
endmacro()

# Hides everything but the entry, and lets the linker refuse what is not defined. Sanitizers leave their runtime undefined in libraries.
function(tenon_restrict_exports target)
  target_link_options(${target} PRIVATE
    LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_exports.map LINKER:--exclude-libs,ALL LINKER:--build-id=sha1)
  get_directory_property(options LINK_OPTIONS)
  if(NOT "${options} ${CMAKE_CXX_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()

# Gives the version range of the plugin contract that the SDK's header describes.
function(tenon_abi_range oldest newest)
  get_target_property(folders TenonSDK::sdk INTERFACE_INCLUDE_DIRECTORIES)
  find_file(TENON_PLUGIN_HEADER core/abi/plugin.h PATHS ${folders} REQUIRED NO_DEFAULT_PATH NO_CACHE)
  foreach(end IN ITEMS OLDEST NEWEST)
    file(STRINGS ${TENON_PLUGIN_HEADER} line REGEX "define TENON_ABI_${end} ")
    string(REGEX MATCH "[0-9]+" ${end} "${line}")
  endforeach()
  set(${oldest} ${OLDEST} PARENT_SCOPE)
  set(${newest} ${NEWEST} PARENT_SCOPE)
endfunction()

# Turns a CMake list into a JSON array of strings.
function(tenon_json_array result)
  set(array "[]")
  set(index 0)
  foreach(item IN LISTS ARGN)
    string(JSON array SET "${array}" ${index} "\"${item}\"")
    math(EXPR index "${index} + 1")
  endforeach()
  set(${result} "${array}" PARENT_SCOPE)
endfunction()

# Each option states its type, one of those that the host checks given values against.
function(tenon_check_options options file)
  set(known boolean integer number text list object)
  string(JSON count LENGTH "${options}")
  if(count EQUAL 0)
    return()
  endif()
  foreach(position RANGE 1 ${count})
    math(EXPR position "${position} - 1")
    string(JSON name MEMBER "${options}" ${position})
    string(JSON type ERROR_VARIABLE problem GET "${options}" ${name} type)
    if(NOT type IN_LIST known)
      message(FATAL_ERROR "${file}: the option \"${name}\" needs a \"type\" that is one of: ${known}")
    endif()
  endforeach()
endfunction()

# Writes the manifest's fixed part now; finish_plugin.cmake completes it with the facts about the linked library.
function(tenon_write_manifest target kind)
  tenon_abi_range(oldest newest)
  string(REPLACE "\\" "\\\\" description "${plugin_DESCRIPTION}")
  string(REPLACE "\"" "\\\"" description "${description}")
  set(manifest [[
{
  "manifest": 1,
  "name": "@target@",
  "kind": "@kind@",
  "library": "@target@.so",
  "version": "@plugin_VERSION@",
  "abi": {"oldest": @oldest@, "newest": @newest@},
  "description": "@description@"
}]])
  string(CONFIGURE "${manifest}" manifest @ONLY)
  if(kind STREQUAL "passes" AND NOT plugin_PASSES)
    set(plugin_PASSES ${target})
  endif()
  foreach(field IN ITEMS PASSES SUFFIXES)
    if(plugin_${field})
      string(TOLOWER ${field} key)
      tenon_json_array(names ${plugin_${field}})
      string(JSON manifest SET "${manifest}" ${key} "${names}")
    endif()
  endforeach()
  if(plugin_OPTIONS)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plugin_OPTIONS})
    file(READ ${plugin_OPTIONS} options)
    tenon_check_options("${options}" ${plugin_OPTIONS})
    string(JSON manifest SET "${manifest}" options "${options}")
  endif()
  set(template ${CMAKE_CURRENT_BINARY_DIR}/${target}.manifest)
  file(CONFIGURE OUTPUT ${template} CONTENT "@manifest@" @ONLY)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DLIBRARY=$<TARGET_FILE:${target}> -DNM=${CMAKE_NM} -DTEMPLATE=${template}
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/finish_plugin.cmake)
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/tenon_use_fmt.cmake)

# tenon_keep_static_objects(TARGET): destroys no static object of the library at exit. For a library whose code threads may be in
# while the process ends: its own, or those of a library linked into it (LLVM).
function(tenon_keep_static_objects target)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/static_objects.cpp)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Makes the target tenon_core from the package's sources, in this project's compiler. In Tenon's own tree it exists already.
function(tenon_core_for_plugins)
  if(TARGET tenon_core)
    return()
  endif()
  find_package(fmt QUIET GLOBAL)
  if(NOT fmt_FOUND)
    message(FATAL_ERROR "tenon_add_plugin(... CORE) needs the headers of {fmt} (Debian and Ubuntu: libfmt-dev)")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${TENON_CORE_SOURCE_DIR}/*.cpp)
  add_library(tenon_core STATIC EXCLUDE_FROM_ALL ${sources})
  set_target_properties(tenon_core PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  target_compile_features(tenon_core PUBLIC cxx_std_20)
  target_link_libraries(tenon_core PUBLIC TenonSDK::sdk)
  tenon_use_fmt(tenon_core)
  target_precompile_headers(tenon_core PRIVATE <fmt/format.h> <functional> <memory> <string> <unordered_map> <vector>)
endfunction()

# tenon_embed(TARGET): lets a program use tenon/embed.hpp. Links libtenon, and Tenon's core compiled with this project's compiler.
function(tenon_embed target)
  tenon_core_for_plugins()
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE tenon_core TenonSDK::tenon)
endfunction()
