"""The programs of ``numpy_programs`` as users of other compilers write them: the same arguments, the same results."""
