#!/usr/bin/env python3
"""Score checkpoints on pairs of photos related by an exact homography, with the program that ships: `theo keypoints`.

PAIRS.json: {"pairs": [{"image_a": FILE, "image_b": FILE, "H_a_to_b": [9 numbers]}, ...]}, paths relative to it.
Prints for every checkpoint: repeatability of the 500 best points (3 pixels), the share and number of mutual nearest neighbours
that are right (3 pixels), and the mean error of the four corners under a RANSAC homography.
"""
import argparse
import json
import os
import subprocess
import tempfile

import cv2
import numpy as np


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoints", nargs="+", metavar="NAME=CHECKPOINT")
    p.add_argument("--pairs", required=True, nargs="+", metavar="PAIRS.json")
    p.add_argument("--theo", default="theo", help="the command to run (default: theo)")
    p.add_argument("--top", type=int, default=1000, help="points of a photo (default 1000)")
    return p.parse_args(arguments)


def keypoints(options, checkpoint, image, folder):
    subprocess.run([options.theo, "keypoints", image, "--model", checkpoint, "--size", "native", "--gray", "luma",
                    "--max-keypoints", str(options.top), "-o", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    stem = os.path.splitext(os.path.basename(image))[0]
    with np.load(os.path.join(folder, stem + ".keypoints.npz")) as z:
        return z["keypoints"], z["descriptors"]


def warp(matrix, points):
    q = np.c_[points, np.ones(len(points))] @ matrix.T
    return q[:, :2] / q[:, 2:]


def nearest(points, others, size):
    """Distances to the nearest of `others`, of those points that lie inside of the other photo (height, width)."""
    inside = (points > 0).all(1) & (points[:, 0] < size[1]) & (points[:, 1] < size[0])
    if not inside.any() or not len(others):
        return np.array([])
    return np.linalg.norm(points[inside][:, None] - others[None], axis=2).min(1)


def score(options, checkpoint, pair, folder):
    matrix = np.array(pair["H_a_to_b"], float).reshape(3, 3)
    sizes = [cv2.imread(pair[k]).shape[:2] for k in ("image_a", "image_b")]
    (pa, da), (pb, db) = (keypoints(options, checkpoint, pair[k], folder) for k in ("image_a", "image_b"))
    there = nearest(warp(matrix, pa[:500]), pb[:500], sizes[1])
    back = nearest(warp(np.linalg.inv(matrix), pb[:500]), pa[:500], sizes[0])
    repeated = np.r_[there, back] < 3
    similarity = da @ db.T
    best = similarity.argmax(1)
    mutual = np.flatnonzero(similarity.argmax(0)[best] == np.arange(len(best)))
    a, b = pa[mutual], pb[best[mutual]]
    right = np.linalg.norm(warp(matrix, a) - b, axis=1) < 3
    error = np.inf
    if len(mutual) >= 4:
        found, _ = cv2.findHomography(a, b, cv2.RANSAC, 3.0)
        if found is not None:
            h, w = sizes[0]
            corners = np.array([[0, 0], [w, 0], [w, h], [0, h]], float)
            error = np.linalg.norm(warp(found, corners) - warp(matrix, corners), axis=1).mean()
    return repeated.mean() if len(repeated) else 0.0, right.mean() if len(right) else 0.0, len(mutual), error


def main(arguments=None):
    options = parse(arguments)
    pairs = []
    for path in options.pairs:
        with open(path, encoding="utf-8") as f:
            for pair in json.load(f)["pairs"]:
                root = os.path.dirname(path)
                pairs.append({**pair, **{k: os.path.join(root, pair[k]) for k in ("image_a", "image_b")}})
    for item in options.checkpoints:
        name, _, checkpoint = item.partition("=")
        with tempfile.TemporaryDirectory() as folder:
            rows = np.array([score(options, checkpoint or name, pair, folder) for pair in pairs])
        repeated, right, matches, error = rows.T
        print(f"{name}: {len(pairs)} pairs, repeatability {repeated.mean():.3f}, right matches {right.mean():.3f} of {matches.mean():.0f}, "
              f"corner error < 1, 3, 5 px {(error < 1).mean():.2f} {(error < 3).mean():.2f} {(error < 5).mean():.2f}, median {np.median(error):.2f} px")


if __name__ == "__main__":
    main()
