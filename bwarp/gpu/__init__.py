"""What any kernel may use: the GPU to run on, its memory, PTX, sums, sorting, lists."""
