"""The topology of a point cloud or of a trained encoder's states, from the charts that cover it.

shapes    points on a circle, a sphere, a torus
fit       an atlas autoencoder, fitted to points
nerve     the Čech nerve of the charts, and its Betti numbers
"""
