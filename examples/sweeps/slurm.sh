#!/bin/bash
#SBATCH --job-name=sutura
#SBATCH --array=0-99
#SBATCH --cpus-per-task=1
#SBATCH --time=01:00:00
# An experiment on a Slurm cluster. Each task of the array does its share of the jobs of the present round, and those
# again that a killed task has not done. OUT is a directory that all nodes share, or a URL:
#
#     export NAME=flec-bulk OUT=$HOME/results OPTIONS="--seeds 100"
#     sbatch examples/sweeps/slurm.sh      # again for each further round, while `sutura lab jobs` lists some
#     sutura lab merge $NAME --out $OUT $OPTIONS
set -euo pipefail
: "${NAME:?the experiment}" "${OUT:?the place of the results}"
# shellcheck disable=SC2206 # OPTIONS are words.
options=(--out "$OUT" ${OPTIONS:-})
jobs=$(sutura lab jobs "$NAME" "${options[@]}")
for job in $jobs; do
    # A job is ROUND-PLACE. Every task finds the same share for itself, whenever it begins.
    if ((${job#*-} % SLURM_ARRAY_TASK_COUNT == SLURM_ARRAY_TASK_ID)); then
        sutura lab run "$NAME" "${options[@]}" --job "$job"
    fi
done
