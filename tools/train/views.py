"""Random views of photos: crops, homographies, light, blur, noise; and the labels that follow from warped points."""
import math
import random

import cv2
import numpy as np

CELL = 8
NO_POINT, IGNORE = 64, -1


def random_homography(height, width, scale=0.25, rotation=0.5, perspective=0.18, shift=0.15):
    """3x3 matrix in pixels of the frame: zoom, turn (one in ten near a quarter or half turn), shear, perspective, shift."""
    cx, cy = width / 2, height / 2
    zoom = math.exp(random.uniform(-scale, scale) * 1.6)
    angle = random.gauss(0, rotation * 0.6)
    if random.random() < 0.1:
        angle += random.choice([math.pi / 2, -math.pi / 2, math.pi])
    turn = np.array([[zoom * math.cos(angle), -zoom * math.sin(angle), 0], [zoom * math.sin(angle), zoom * math.cos(angle), 0], [0, 0, 1.0]])
    stretch = math.exp(random.uniform(-0.15, 0.15))
    shear = np.array([[stretch, random.uniform(-0.15, 0.15), 0], [0, 1 / stretch, 0], [0, 0, 1.0]])
    tilt = np.eye(3)
    tilt[2, 0] = random.uniform(-perspective, perspective) * 0.7 / cx
    tilt[2, 1] = random.uniform(-perspective, perspective) * 0.7 / cy
    to_centre = np.array([[1, 0, -cx], [0, 1, -cy], [0, 0, 1.0]])
    back = np.array([[1, 0, cx + random.uniform(-shift, shift) * width], [0, 1, cy + random.uniform(-shift, shift) * height], [0, 0, 1.0]])
    return back @ turn @ shear @ tilt @ to_centre


def warp_points(matrix, points):
    if not len(points):
        return points
    q = np.c_[points, np.ones(len(points))] @ matrix.T
    return q[:, :2] / q[:, 2:3]


def random_crop(path, height, width):
    """A gray uint8 crop of a photo at a random scale and channel mix; None for files that are not usable photos."""
    image = cv2.imread(path)
    if image is None or min(image.shape[:2]) < 100:
        return None
    h, w = image.shape[:2]
    smallest = max(height / h, width / w)
    zoom = smallest * math.exp(random.uniform(0, math.log(max(1.0001, min(1 / smallest, 2.2)))))
    h, w = max(height, round(h * zoom)), max(width, round(w * zoom))
    image = cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR)
    y, x = random.randint(0, h - height), random.randint(0, w - width)
    crop = image[y:y + height, x:x + width].astype(np.float32)
    draw = random.random()
    if draw < 0.4:
        mix = np.array([0.114, 0.587, 0.299])  # luma of B, G, R
    elif draw < 0.8:
        mix = np.array([0.0, 0.0, 1.0])  # the red plane, as the network is used
    else:
        mix = np.random.dirichlet([1, 1, 1])
    return (crop @ mix).clip(0, 255).astype(np.uint8)


def photometric(gray):
    """Contrast, brightness, gamma, gradient light, blur, motion blur, noise, JPEG: each with its own chance. float32, 0..255."""
    g = gray.astype(np.float32)
    h, w = g.shape
    if random.random() < 0.8:
        g = (g - 128) * random.uniform(0.5, 1.5) + 128 + random.uniform(-50, 50)
    if random.random() < 0.5:
        g = 255 * np.power(np.clip(g, 0, 255) / 255, random.uniform(0.5, 2.0))
    if random.random() < 0.3:
        y, x = np.mgrid[0:h, 0:w]
        slope = (x - random.uniform(0, w)) * random.uniform(-1, 1) + (y - random.uniform(0, h)) * random.uniform(-1, 1)
        g = g + slope / w * 60
    if random.random() < 0.25:
        g = cv2.GaussianBlur(g, (0, 0), random.uniform(0.4, 1.6))
    if random.random() < 0.1:
        size = random.choice([3, 5, 7])
        kernel = np.zeros((size, size), np.float32)
        kernel[size // 2] = 1.0
        turn = cv2.getRotationMatrix2D((size / 2 - 0.5, size / 2 - 0.5), random.uniform(0, 180), 1)
        kernel = cv2.warpAffine(kernel, turn, (size, size))
        g = cv2.filter2D(g, -1, kernel / max(kernel.sum(), 1e-3))
    if random.random() < 0.6:
        g = g + np.random.randn(h, w).astype(np.float32) * random.uniform(1, 10)
    g = np.clip(g, 0, 255)
    if random.random() < 0.15:
        _, data = cv2.imencode(".jpg", g.astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, random.randint(25, 80)])
        g = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE).astype(np.float32)
    return g


def random_view(gray, keep_chance=0.0):
    """(homography, warped and lit picture); with `keep_chance` the homography is the identity."""
    h, w = gray.shape
    matrix = np.eye(3) if random.random() < keep_chance else random_homography(h, w)
    border = random.choice([cv2.BORDER_CONSTANT, cv2.BORDER_REFLECT_101])
    return matrix, photometric(cv2.warpPerspective(gray, matrix, (w, h), flags=cv2.INTER_LINEAR, borderMode=border))


def visible_cells(matrix, height, width):
    """[H/8, W/8] bool: cells whose whole source lies inside the photo, some pixels away from its edge."""
    mask = cv2.warpPerspective(np.ones((height, width), np.uint8), matrix, (width, height))
    mask = cv2.erode(mask, np.ones((9, 9), np.uint8))
    return mask.reshape(height // CELL, CELL, width // CELL, CELL).min((1, 3)) != 0
