# find_package(pageset): the targets pageset::pageset (shared) and pageset::static.
# Installed as PREFIX/share/cmake/pageset, so the prefix is three directories up.
get_filename_component(_pageset_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(_pageset_in HINTS "${_pageset_prefix}"
    PATH_SUFFIXES lib lib64 "lib/${CMAKE_LIBRARY_ARCHITECTURE}" NO_DEFAULT_PATH NO_CACHE)
find_library(_pageset_shared NAMES libpageset.so ${_pageset_in})
find_library(_pageset_static NAMES libpageset.a ${_pageset_in})
find_path(_pageset_include NAMES pageset.h HINTS "${_pageset_prefix}/include" NO_DEFAULT_PATH NO_CACHE)

if(NOT _pageset_include OR NOT (_pageset_shared OR _pageset_static))
  set(pageset_FOUND FALSE)
  set(pageset_NOT_FOUND_MESSAGE "${_pageset_prefix} has no pageset.h, or neither libpageset.so nor libpageset.a")
endif()
if(_pageset_include AND _pageset_shared AND NOT TARGET pageset::pageset)
  add_library(pageset::pageset SHARED IMPORTED)
  set_target_properties(pageset::pageset PROPERTIES
    IMPORTED_LOCATION "${_pageset_shared}" INTERFACE_INCLUDE_DIRECTORIES "${_pageset_include}")
endif()
if(_pageset_include AND _pageset_static AND NOT TARGET pageset::static)
  add_library(pageset::static STATIC IMPORTED)
  set_target_properties(pageset::static PROPERTIES
    IMPORTED_LOCATION "${_pageset_static}" INTERFACE_INCLUDE_DIRECTORIES "${_pageset_include}"
    INTERFACE_LINK_LIBRARIES "gcc_s;rt;pthread;m;dl")
endif()
