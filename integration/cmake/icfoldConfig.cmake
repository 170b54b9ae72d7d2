# icfoldConfig.cmake: what find_package(icfold) reads: the program of this installation, and icfold_target().
include("${CMAKE_CURRENT_LIST_DIR}/icfold.cmake")
