# tenon_use_fmt(TARGET): {fmt} for core. Version 9 is compiled once, by core/base/formatting.cpp; another one in every file.
function(tenon_use_fmt target)
  if(fmt_VERSION VERSION_GREATER_EQUAL 10)
    target_link_libraries(${target} PUBLIC fmt::fmt-header-only)
  else()
    get_target_property(headers fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
    target_include_directories(${target} SYSTEM PUBLIC ${headers})
  endif()
endfunction()
