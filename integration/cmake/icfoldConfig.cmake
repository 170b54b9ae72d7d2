# icfoldConfig.cmake: what find_package(icfold) reads: the program of this installation, and icfold_target().
get_filename_component(_icfold_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT ICFOLD_EXECUTABLE)
  find_program(ICFOLD_EXECUTABLE icfold HINTS "${_icfold_prefix}/bin" NO_DEFAULT_PATH)
endif()
unset(_icfold_prefix)
include("${CMAKE_CURRENT_LIST_DIR}/icfold.cmake")
