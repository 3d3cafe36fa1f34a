"""What a representation looks like, without labels: pure functions of features, one subject per file.

    information          InfoNCE bound on mutual information, with its ceiling
    geometry             alignment, uniformity, spread on the sphere
    spectrum             effective rank, LiDAR, decay of the eigenvalues
    centroids            nuclear norm of the centroid matrix, its bound, the percent error
    units                dead units
    heads                similarity of heads: linear CKA and cosine
    membership           usage of charts, entropy of the membership
    manifold_capacity    capacity, radius and dimension of labelled groups of points, by mean-field theory
    alarm                collapse, in words

All take NumPy arrays with one row per sample and compute in float64. docs/diagnostics.md explains how to read each.
"""
