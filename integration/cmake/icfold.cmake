# icfold.cmake: folds identical functions behind the link step of a target.
#
#   find_package(icfold REQUIRED)        or: include(icfold.cmake)
#   icfold_target(TARGET [OPTIONS OPTION...])
#
# TARGET is an executable, or a shared or module library, of this directory.  It is linked with --emit-relocs, and the result is
# folded in place: what runs, is tested and installed is the folded file.  OPTIONS go to icfold (see icfold(1)).
# ICFOLD_EXECUTABLE is the program; when it is not set it is looked for beside this file's installation, then in PATH.  ICFOLD_ENABLE set to OFF makes the function do nothing.
cmake_minimum_required(VERSION 3.13)
option(ICFOLD_ENABLE "Fold identical functions of the targets that ask for it" ON)
if(ICFOLD_ENABLE)
  find_program(ICFOLD_EXECUTABLE icfold HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" NO_DEFAULT_PATH)
  find_program(ICFOLD_EXECUTABLE icfold DOC "icfold, which folds identical functions of linked programs")
endif()

function(icfold_target target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "icfold_target(${target}): what is ${arg_UNPARSED_ARGUMENTS}?  Options of icfold follow OPTIONS.")
  endif()
  if(NOT ICFOLD_ENABLE)
    return()
  endif()
  if(NOT ICFOLD_EXECUTABLE)
    message(FATAL_ERROR "icfold_target(${target}): icfold was not found; set ICFOLD_EXECUTABLE")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
    message(FATAL_ERROR "icfold_target(${target}): nothing is linked for a target of type ${type}")
  endif()
  target_link_options(${target} PRIVATE LINKER:--emit-relocs)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${ICFOLD_EXECUTABLE} ${arg_OPTIONS} $<TARGET_FILE:${target}> -o $<TARGET_FILE:${target}>
    COMMENT "Folding identical functions of ${target}"
    VERBATIM)
endfunction()
