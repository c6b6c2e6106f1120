#!/bin/bash
# Trains on several machines of a SLURM cluster: sbatch examples/slurm.sh
#
# All machines see this folder. SLURM sends SIGTERM five minutes before the time limit; the training
# then saves a checkpoint, and the next `sbatch` resumes it.
#SBATCH --job-name=translation
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300

source .venv/bin/activate
srun python train.py --train.strategy multi_worker --run_dir runs/cluster \
    --data.train_source a.en --data.train_target b.de
