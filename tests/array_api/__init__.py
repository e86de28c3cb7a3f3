"""The functions of the array API standard that NumPy has, run through tenon.compile."""
