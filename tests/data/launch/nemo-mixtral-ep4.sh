nemo llm pretrain --factory mixtral_8x7b trainer.strategy.expert_model_parallel_size=4
