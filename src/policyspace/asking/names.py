"""What the numbers of known environments are called, as Gymnasium documents them."""

from typing import Any

import numpy as np

LEGS = "front_left front_right back_left back_right"

ANT = [f"{part}_{leg}" for leg in LEGS.split() for part in ("hip", "ankle")]

PUSHER = ["shoulder_pan", "shoulder_lift", "upper_arm_roll", "elbow_flex", "forearm_roll", "wrist_flex", "wrist_roll"]

LEG_JOINTS = "thigh_angle leg_angle foot_angle"
LEG_SPEEDS = "thigh_velocity leg_velocity foot_velocity"
TORSO_SPEEDS = "x_velocity z_velocity torso_velocity"

NAMES = {
    "CartPole": "position velocity angle angular_velocity",
    "MountainCar": "position velocity",
    "MountainCarContinuous": "position velocity",
    "Pendulum": "cos_angle sin_angle angular_velocity",
    "Acrobot": "cos_angle_1 sin_angle_1 cos_angle_2 sin_angle_2 angular_velocity_1 angular_velocity_2",
    "LunarLander": "x y x_velocity y_velocity angle angular_velocity left_leg right_leg",
    "BipedalWalker": "hull_angle hull_angular_velocity x_velocity y_velocity hip_1_angle hip_1_velocity knee_1_angle "
    "knee_1_velocity leg_1_contact hip_2_angle hip_2_velocity knee_2_angle knee_2_velocity leg_2_contact "
    + " ".join(f"lidar_{i}" for i in range(10)),
    "InvertedPendulum": "position angle velocity angular_velocity",
    "InvertedDoublePendulum": "position sin_angle_1 sin_angle_2 cos_angle_1 cos_angle_2 velocity angular_velocity_1 "
    "angular_velocity_2 constraint_force",
    "Hopper": f"height torso_angle {LEG_JOINTS} {TORSO_SPEEDS} {LEG_SPEEDS}",
    "Walker2d": f"height torso_angle {LEG_JOINTS} left_thigh_angle left_leg_angle left_foot_angle {TORSO_SPEEDS} "
    f"{LEG_SPEEDS} left_thigh_velocity left_leg_velocity left_foot_velocity",
    "HalfCheetah": "height torso_angle back_thigh_angle back_shin_angle back_foot_angle front_thigh_angle "
    f"front_shin_angle front_foot_angle {TORSO_SPEEDS} back_thigh_velocity back_shin_velocity back_foot_velocity "
    "front_thigh_velocity front_shin_velocity front_foot_velocity",
    "Swimmer": "front_angle rotor_1_angle rotor_2_angle x_velocity y_velocity front_velocity rotor_1_velocity "
    "rotor_2_velocity",
    "Reacher": "cos_joint_1 cos_joint_2 sin_joint_1 sin_joint_2 target_x target_y joint_1_velocity joint_2_velocity "
    "distance_x distance_y",
    "Pusher": " ".join([f"{joint}_angle" for joint in PUSHER] + [f"{joint}_velocity" for joint in PUSHER])
    + " fingertip_x fingertip_y fingertip_z object_x object_y object_z goal_x goal_y goal_z",
    "Ant": "height orientation_w orientation_x orientation_y orientation_z "
    + " ".join(f"{joint}_angle" for joint in ANT)
    + " x_velocity y_velocity z_velocity x_angular_velocity y_angular_velocity z_angular_velocity "
    + " ".join(f"{joint}_velocity" for joint in ANT),
}
"""By the id without its version."""


def names_of(env_id: str | None, space: Any, frames: int = 1) -> tuple[str, ...] | None:
    """The names of the numbers in one frame of an observation; None where the environment, or its size, is not known."""
    known = tuple(NAMES.get((env_id or "").split("-v")[0].replace("LunarLanderContinuous", "LunarLander"), "").split())
    shape = getattr(space, "shape", None)
    return known if known and shape is not None and int(np.prod(shape)) == len(known) * frames else None
